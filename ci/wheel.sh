#!/bin/sh
# Builds the wheel and the sdist into dist/, checks the wheel's platform, and tries it on each Python that is here:
# installed from the cache of packages, without a compiler, `lfn demo` must give a report.
#   ci/wheel.sh [UV [TARGET]]    TARGET: a second system, whose wheel is built with zig
set -eu
cd "$(dirname "$0")/.."
uv=${1:-uv}
share=python/lfnlab/share
trap 'rm -rf "$share" "${tried:-}"' EXIT
tried=$(mktemp -d)

# What a clone has beside the package, and an installed lfnlab has in it.
rm -rf "$share" dist
git ls-files -z papers scenarios | xargs -0 cp --parents --target-directory "$(mkdir -p "$share" && echo "$share")"
"$uv" tool run maturin@1.16.0 sdist --out dist
"$uv" tool run maturin@1.16.0 build --release --strip --out dist
wheel=$(ls dist/*.whl)
if [ -n "${2:-}" ]; then
	"$uv" tool run --with ziglang==0.15.2 maturin@1.16.0 build --release --strip --zig --target "$2" --out dist
fi
rm -rf "$share"
"$uv" tool run auditwheel@6.4.2 show "$wheel" | tee "$tried/audit"
grep -q manylinux_2_34_x86_64 "$tried/audit"
ls -l dist

bare=$tried/bin # no compiler, no cargo, no make
mkdir "$bare"
for tool in sh env uname cat rm mkdir ls; do ln -s "$(command -v $tool)" "$bare"; done
for version in 3.11 3.12 3.13 3.14; do
	python=$("$uv" python find "$version" 2>/dev/null) || { echo "Python $version: not here"; continue; }
	"$uv" venv --quiet --python "$python" "$tried/$version"
	# The first install fills the cache.
	"$uv" pip install --quiet --python "$tried/$version" "$wheel"
	rm -rf "$tried/$version"
	began=$(date +%s.%N)
	"$uv" venv --quiet --python "$python" "$tried/$version"
	PATH=$bare "$(command -v "$uv")" pip install --quiet --offline --python "$tried/$version" "$wheel"
	(cd "$tried" && PATH="$bare" "$tried/$version/bin/lfn" demo --out "$tried/demo-$version") >"$tried/said"
	ended=$(date +%s.%N)
	test -s "$tried/demo-$version/report.html"
	echo "Python $version: installed, and lfn demo, in $(echo "$ended - $began" | bc) s; $(du -sh "$tried/$version" | cut -f 1)"
	(
		cd "$tried"
		PATH=$bare
		"$tried/$version/bin/lfn" paper list
		"$tried/$version/bin/lfn" laboratory --out "$tried/$version.html"
		"$tried/$version/bin/lfn" kernel list
	) >>"$tried/said"
done
