#!/bin/bash
# PID 1 of a pretended host: its own name, /run, /dev/shm and sshd; reaps what is orphaned.
# usage: host.sh NAME FOLDER
set -e
name=$1 folder=$2
hostname "$name"
mount --bind "$folder/hosts" /etc/hosts
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/munge /run/slurmd /run/lock
mount -t tmpfs -o size=1g tmpfs /dev/shm
mkdir -p "$folder/$name.cgroup"
mount --rbind /sys/fs/cgroup "$folder/$name.cgroup"
mount -t sysfs sysfs /sys    # of this network, so that /sys/class/net shows eth0
mount --rbind "$folder/$name.cgroup" /sys/fs/cgroup
/usr/sbin/sshd -f "$folder/sshd_config" -E "$folder/$name.sshd.log"
touch "$folder/$name.ready"
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done
