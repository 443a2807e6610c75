"""Empty roots of Debian, in which nothing of this machine or of ours is but what a test takes along. They are made by debootstrap from where apt
gets packages, and kept in build/roots. A test that cannot have one says why and ends with SKIPPED."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "roots"
SKIPPED = 77
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def mirror():
    """Where apt gets Debian's packages; nothing if it does not say."""
    if shutil.which("apt-get") is None:
        return ""
    query = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian", "Component: main"]
    return (subprocess.run(query, check=True, capture_output=True, text=True).stdout.split() or [""])[0]


def in_own_mounts(script, *arguments):
    """A command that runs a script whose mounts and processes end with it."""
    return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "sh", "-ec", script, "sh", *map(str, arguments)]


def make(suite, packages):
    """The folder of a root, made if it is not there yet."""
    if os.environ.get("CINCH_LONG", "0") in ("", "0"):
        skip("CINCH_LONG is not set")
    if os.geteuid() != 0:
        skip("only root may change the root")
    if subprocess.run(in_own_mounts("mount -t tmpfs none /mnt"), capture_output=True).returncode != 0:
        skip("nothing may be mounted here")
    root = ROOTS / "-".join([suite, *packages])
    if root.exists():
        return root
    if shutil.which("debootstrap") is None:
        skip("debootstrap is not here")
    source = mirror()
    if not source:
        skip("apt does not say where Debian's packages are; apt-get update may help")
    made = root.with_name(root.name + ".partial")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    options = ["--variant=minbase", *([f"--include={','.join(packages)}"] if packages else [])]
    done = subprocess.run(["debootstrap", *options, suite, made, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        skip(f"no root of {suite} could be made: {done.stdout.strip().splitlines()[-1]}")
    made.rename(root)
    return root


def command(root, taken, results, words):
    """What runs `words` in the root: `taken` is read only at /taken, `results` at /results; all else that is written is gone afterwards."""
    script = """root=$1 taken=$2 results=$3 top=$4; shift 4
mount -t tmpfs none "$top"
mkdir "$top/upper" "$top/work" "$top/tree"
mount -t overlay -o "lowerdir=$root,upperdir=$top/upper,workdir=$top/work" none "$top/tree"
mkdir "$top/tree/taken" "$top/tree/results"
mount --bind "$taken" "$top/tree/taken"
mount -o remount,ro,bind "$top/tree/taken"
mount --bind "$results" "$top/tree/results"
mount -t proc none "$top/tree/proc"
mount --rbind /dev "$top/tree/dev"
exec chroot "$top/tree" "$@"
"""
    top = ROOTS / "mounted"
    top.mkdir(exist_ok=True)
    return in_own_mounts(script, root, taken, results, top, *words)
