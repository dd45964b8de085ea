#!/bin/sh
# Type-checks the simulator, the Python package and the programs in examples/ for other systems; compiles the laws in C
# for them with zig. It links and runs nothing. Needs rustup.
#   ci/platforms.sh UV [TARGET...]
set -eu
cd "$(dirname "$0")/.."
uv=$1
shift
folder=$(mktemp -d)
# For Apple's systems zig leaves an empty object beside the crate.
trap 'rm -rf "$folder" crates/law/a.o' EXIT
zig="$uv tool run --quiet --from ziglang==0.17.1 python-zig"

for target in ${*:-aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu x86_64-unknown-freebsd aarch64-unknown-linux-gnu}; do
	rustup --quiet target add "$target"
	packages="-p lfn-python -p lfn-scenario -p lfn-examples"
	case $target in
	*-linux-*) packages="--workspace --exclude lfn-browser" ;;
	esac
	name=$(echo "$target" | sed 's/apple-darwin/macos/; s/-pc-/-/; s/-unknown-/-/')
	# Rust's name of the target, which the crate cc adds, is not zig's.
	cat >"$folder/cc" <<-EOF
		#!/bin/sh
		for word; do
			shift
			case \$word in --target=*) ;; *) set -- "\$@" "\$word" ;; esac
		done
		exec $zig cc -target $name "\$@"
	EOF
	printf '#!/bin/sh\nexec %s ar "$@"\n' "$zig" >"$folder/ar"
	chmod +x "$folder/cc" "$folder/ar"
	key=$(echo "$target" | tr - _)
	# shellcheck disable=SC2086  # a list of options
	env "CC_$key=$folder/cc" "AR_$key=$folder/ar" PYO3_NO_PYTHON=1 PYO3_CROSS_PYTHON_VERSION=3.11 \
		CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/platforms" cargo check --locked --quiet --target "$target" $packages
	echo "$target: checked"
done
