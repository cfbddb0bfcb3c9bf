# Load environment modules and print the environment they make, NUL-separated.
# Usage: bash --noprofile --norc modules.sh NAME...   Names are checked by module_sets.py.
# Exit codes: 96 there is no module command here; 97 a module does not load.
exec 3>&1 1>&2
if ! command -v module >/dev/null; then
    for init in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" \
        /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash \
        /opt/cray/pe/lmod/lmod/init/bash /etc/profile.d/modules.sh /etc/profile.d/lmod.sh; do
        if [ -r "$init" ]; then
            . "$init"
            break
        fi
    done
fi
command -v module >/dev/null || exit 96
# One that the caller's shell has loaded would set nothing again: what it had set for Python is gone.
loaded=()
for name in "$@"; do
    case ":${LOADEDMODULES:-}:" in
    *":$name:"* | *":$name/"*) loaded=("$name" "${loaded[@]}") ;;
    esac
done
[ "${#loaded[@]}" -eq 0 ] || module unload "${loaded[@]}"
module load "$@" || exit 97
exec /usr/bin/env -0 >&3
