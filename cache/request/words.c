/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that may stay in a text: what CRI, NRI, gRPC, CNI, runc, crun, containerd, CRI-O and
 * the kernel say, parts of their type names and paths, and the small words of English. A word
 * stands here because a program prints it. That a request may say it, too, is redact.c's concern.
 *
 * Lower case, sorted as strcmp() sorts, a blank between two; test-redact checks it.
 */
#include <string.h>

#include "cache/request/words.h"
#include "cache/request/allowlist.h"
#include "src/base/mem.h"

/* clang-format off */
static const char *const lines[] = {
	"a able abort aborted aborting about above absolute accept access accessible accessing",
	"acquire across act action activate activating activation active actual actually",
	"adaptation add added adding additional addr address addresses addrs adj adjust adjustment",
	"admin admission advertise affinity after again age agent ago alarm alias alive all",
	"allocate allocated allow allowed allows alone alpn already also alter although alts",
	"always ambient amd64 an and android annotation annotations another answer answered",
	"answers antrea any anything api apis app apparmor append applied apply applying arch",
	"architecture archive are aren arg args argument arguments arm64 armor array artifact",
	"artifacts as ascii ask asked asks assembling assertion assign assuming at attach attached",
	"attempt attempted attempting attempts attr attribute attrs audit auth authentication",
	"authority authorization authorize authorized auths auto available avoided aware away back",
	"backend backing backoff backup bad badrequest balancer balancing balloon balloons",
	"bandwidth banned base base64 basic be became because becoming been before begin behavior",
	"being below besteffort between bfq big bin binary bind bit bitmask bits blkdiscard blob",
	"blobs block blocked blockio body boolean boom boot bootstrap both bounding bounds bpf",
	"breakout bridge broadcast broken btrfs bucket buckets budget buffer build builder",
	"buildkit built builtin bundle burst burstable bus busy but by byte bytes ca cache cached",
	"caches calculate calico call callback called caller calling can canal canary cancel",
	"canceled cancellation cancelled cannot canonical cap capabilities capability capacity",
	"caps cat cause caused cdi ceph cert certificate certificates certs cfs cgi cgroup cgroup2",
	"cgroupfs cgroups cgroupsv2 cgroupv2 chain chained chains challenge change changed changes",
	"changing channel char character characters chdir check checking checkpoint checkpointed",
	"checkpointing child children chmod chown chroot chunked cidr cilium cipher class classic",
	"clean cleaned cleaning cleanup clear clearenv client clock cloexec clone cloned cloning",
	"clos close closed closer closing cluster clusters cmd cni cni0 cnitool code codes collect",
	"collecting collection collector com comm command comment commit committed common",
	"communication complete completed component components compressed compression compressor",
	"compute concurrent condition conf config configmap configmaps configs configuration",
	"configure configured configuring confl conflicts conflist conflists confs conmon conmond",
	"conmonrs conn connect connected connecting connection connections connector connects",
	"conns conntrack consider console constant construct consumed contain container containerd",
	"containerid containers contains content contents context continuing continuous control",
	"controller controllers conversion convert converted converting copied copy copying core",
	"cores correct correctly corrupted could couldn count cpu cpus cpuset crash crashed crd",
	"create created creates creating creation creations credential credentials creds cri",
	"crictl crikeep crikeepd crio criu cross crt crun csi ctl ctr current currently custom cwd",
	"dac daemon dangerous darwin data database date day days dbus deactivate dead deadline",
	"deadlock debug declared decode decoding decompression decryption default defaulting",
	"defined definition del delegate delegated delete deleted deletes deleting deletion denied",
	"denies deny dependency deprecated deprecation desc description descriptor descriptors",
	"desired destination destroy destroyed destroying destroys detach detail details detect",
	"detected determine dev device devices devmapper devpts dhcp dial dialing did didn died",
	"diff differ different differs digest dir directly directories directory dirs disable",
	"disabled disabling disallowed discard discarding disconnected discover disk distributable",
	"distribution dmsetup dmverity dnat dns do docker docker0 dockerd does doesn domain",
	"domainname don done down downgrading downward drain draining driver drop dropped dropping",
	"dst due dummy dump dumpable dumped dup duplicate duplicated duration during e2big eacces",
	"each eaddrinuse eaddrnotavail eadv eafnosupport eagain ealready earlier early ebade ebadf",
	"ebadfd ebadmsg ebadr ebadrqc ebadslt ebfont ebpf ebusy ecanceled echild echrng ecomm",
	"econnaborted econnrefused econnreset ecr edeadlock edestaddrreq edom edotdot edquot",
	"eexist efault efbig effect effective ehostdown ehostunreach eidrm eilseq einprogress",
	"eintr einval eio eisconn eisdir eisnam either ekeyexpired ekeyrejected ekeyrevoked",
	"el2nsync el3hlt el3rst elibacc elibbad elibexec elibmax elibscn elnrng eloop else",
	"emediumtype emfile emlink empty emptydir emsgsize emulated emultihop enable enabled",
	"enabling enametoolong enavail encode encoding encountered end endpoint endpoints enetdown",
	"enetreset enetunreach enfile enoano enobufs enocsi enodata enodev enoent enoexec enokey",
	"enolck enolink enomedium enomem enomsg enonet enopkg enoprotoopt enospc enosr enostr",
	"enosys enotblk enotconn enotdir enotempty enotnam enotrecoverable enotsock enotsup enotty",
	"enotuniq enough ensure entries entry env environment enxio eof eoverflow eownerdead eperm",
	"epfnosupport epipe epoll epoller eproto eprotonosupport eprototype equal erange eremchg",
	"eremote eremoteio erestart erfkill erofs err errno error errorinfo errors eshutdown",
	"esocktnosupport especially espipe esrch esrmnt estale estrpipe etc eth0 ethtool etime",
	"etimedout etoomanyrefs etxtbsy euclean eunatch eusers event events ever every everything",
	"evict eviction exactly exceed exceeded exceeds exchange exclusive exdev exe exec",
	"executable execute executing execve execveat exeseal exfull exhausted exist existence",
	"existing exists exit exited exits expanding expected expiration expired export exported",
	"exporting express expression ext4 extended extension extensions external extra extract",
	"extraction fail failed failing failure fallback falling false family fast fatal fault",
	"faulty fcgi fchdir fchmodat fchmodat2 fchown fchownat fcntl fd fds feature features fetch",
	"fetched fetching few field fields fifo fifos file files filesystem filter filtered",
	"filters final find finish finished firecracker firewall first flag flags flannel",
	"flexvolume flistxattr flow flush flushing follow following font for forbidden forbids",
	"force forcibly forcing fork form format forward forwarding found fowner frame free",
	"freebsd freezer from fs fsconfig fsetid fsmount fsnotify fsopen fstat fstatfs fstype",
	"fsverity ftype fulfil full fully func function further fuse future garbage gateway gcr",
	"gen generate generated generating generator geneve get getcwd getting getwd ghcr gid",
	"gidmapping gids given global go goaway golang gomaxprocs gone good google googleapis",
	"goroutine got governor gpu grace graph greater group groups grpc grpclb gshadow",
	"guaranteed gvisor had hairpin halted hand handed handle handled handler handlers handling",
	"handshake handshaker hang hangs hardware has hasn have haven having he head header",
	"headers health heap held helper her here hex hierarchy high hint hit home hook hooks host",
	"hostname hostpath hostport hostports hosts hour hours how http http2 https huge hugetlb",
	"hung hybrid i id identifier idle idmap idmapped ids if iface ifb ifindex ifpriomap ignore",
	"ignored ignoring illegal image images immutable implement implementation implemented",
	"import in inappropriate include incompatible incomplete inconsistent incorrect index",
	"infer info information infos infra ingest ingress init initial initialization initialize",
	"initialized initializing inject injection injector inode inodes inotify input insecure",
	"inside inspect inspection installed instance instead insufficient int integer integers",
	"intel intelrdt interface interfaces internal interrupted interval into introspect invalid",
	"invoke io ioctl ip ip6tables ipam ipc ips ipset ipt iptable iptables ipv4 ipv6 ipvlan irq",
	"irqbalance is iscsi isn issue issues istio it items its join joined joining joins json",
	"just jwt k8s kata keep keeping keeps kept kernel key keyctl keyring keys kill killed",
	"killing kindnet known krun kube kubelet kubepods kubernetes kvm label labels lack lacks",
	"landlock large larger last late latency later latest layer layers layout lb leaked lease",
	"least leave leaves leaving left len length less level levels lib libcontainer libcriu",
	"libpod libraries library like likely limit limits line lines link linkat linked linkerd",
	"linklogs links linux list listen listener listing literal lo load loaded loading local",
	"localhost locally localtime locate location lock locked locks log logger logging logs",
	"long longer look looking lookup loop loopback loss lost low lower lowerdir lsm lstat mac",
	"machine macvlan magic main major make makes malformed malicious managed manager manifest",
	"manifests many map mappable mapped mapping mappings mark marking marshal marshaling",
	"marshall mask masked masq master match matching max maximum may maybe mba md5 me media",
	"mediatype medium mem memfd memory mempolicy mems memtierd merged message messages meta",
	"metadata metastore method metric metrics might migrate migration mime min mine minimum",
	"minor minute minutes mirrors misformatted mismatch mismatched miss missing mkdir mkdirat",
	"mkfs mknod mknodat mmap mnt mntns moby mod mode module monitor monitoring month more most",
	"mount mounted mountfd mountid mounting mountpoint mounts move moving mprotect mqueue ms",
	"msg mtu much multibyte multicast multihop multipart multiple multus must mutually mux",
	"name named names namespace namespaced namespaces nano native near need needed needs",
	"negative neither nerdctl nested net netconf netlink netns network networking networks",
	"never new newer newly newns next nfs nft nftables nice nil nlink no nobody node nodename",
	"nodenames nodes noexec nofollow non none noop nor normalized not notation nothing",
	"notification notifications notifier notify now nri ns nsexec nsswitch ntfs nul null numa",
	"number numeric numerical nvidia nvme nydus o object obtain occurred oci of off offset",
	"offsets often ok old older oldroot on once one only oom oomd oomkilled open openat",
	"openat2 opencontainers opendir opened opening operation operator opt option options opts",
	"or org origin original os other others our out output outside over overlap overlapping",
	"overlaps overlay overlayfs override overriding oversized ovn own owner pacct package",
	"packet pad page pager pages pair panic parallel parallelism parameter parameters params",
	"parent parenthetical parents parse parsing part partial partially parts passed passwd",
	"past path paths pattern pause paused payload pci pdeath peak peer pem pemfile per perfmon",
	"perform period permission permissions permitted persist pid pidfd pidfile pids pin ping",
	"pinns pipe pipes piping pivot pivotroot platform please plugin plugins pod podip podips",
	"podman pods podsandbox podsandboxid point policy poll pool port portforward portmap",
	"position positive possible possibly post potentially ppc64le pprof prctl pre precondition",
	"pref preface prefix prematurely prepare prepared prepares preparing present pressure prev",
	"previous prio priority private privileged privileges privs probably proc process",
	"processes processing procfd procfs prochooks procready procrun procs procseccomp profile",
	"profiles program progress projectcalico projected promisc promiscuous propagation",
	"property protocol protocols provide provided proxy pseudo ptmx ptp ptrace pty publish",
	"pull pulled pulling pulls push pushing pushpromise put putenv qdisc qemu qos quay query",
	"queue quick quickly quite quota quoted quoting race raise ran random randomsubsetting",
	"range rate rather raw rawio rbd rdma rdt read reader readiness reading readlink readonly",
	"ready real realm realpath realtime reason reasons reboot rebuild rec receive received",
	"receiver receiving reclaim reconcile reconnect record records recover recoverable",
	"recursive recv recvfd recvfrom recvmsg redirect redirecting redirects ref reference",
	"references referrer referrers refetch reformat refusal refuse refused refuses refusing",
	"register registered registering registries registry regular rejected rejecting rejects",
	"relabel relative release reload reloading remap remote remount removal remove removed",
	"removes removing rename reopen repair repeated replace replaced repo report reported",
	"reporter reports repository req request requested requests require required requires",
	"resctl reserve reserved reserving reset resetting resize resolv resolve resolved resolver",
	"resolving resource resources response restart restarted restore restored restoring",
	"restrict restricted result resume resuming retried retries retrieve retrieved retry",
	"retrying return returned returning returns reused revoked rfs right ring riscv64 rlimit",
	"rlimits rmdir rollback room root rootfs rootless route routes routing rpc rro rshared",
	"rule rules run runc running runsc runtime runtimes rw s s390x safe said same sandbox",
	"sandboxer sandboxes save says sbin sbr scaling sched schedule scheduler schema scheme",
	"scmp scope score scratch sctp sd seals search seccomp second seconds secret secrets",
	"section secure see seek seeker seen segment segmentation segments select self selinux",
	"semaphores send sendfile sending sendmsg sent separate serialize serve server service",
	"serviceaccount serving session set setaffinity setattr setenv setfcap setgid setgroups",
	"setns setpcap setresgid setresuid setsid setsockopt setting settings setuid setup several",
	"severed sha256 sha512 shadow shall shared she shim shims shm short should shouldn show",
	"shut shutdown shutting siblings side sigabrt sigalrm sigbus sigchld sigcont sigfpe sighup",
	"sigill sigint sigio sigkill signal signalfd signals signature signed sigpipe sigprocmask",
	"sigprof sigpwr sigquit sigsegv sigsetmask sigstkflt sigstop sigsys sigterm sigtrap",
	"sigtstp sigttin sigttou sigurg sigusr1 sigusr2 sigvtalrm sigwinch sigxcpu sigxfsz",
	"simultaneously since single size skip skipped skipping slash slave slaving slice slot",
	"slow slowly small smp snapshot snapshots snapshotter so soci sock socket socketpair",
	"software some something soon source space spawn spawning spec specgen specific",
	"specification specified specifies specify specs spiderpool splice split spoof src srmount",
	"srv ssd stack stage stages stale stargz start started starting starts startup stat state",
	"statfs static stats status statuses stderr stdin stdio stdout still stop stopped stopping",
	"stops storage store stored stream streaming streams string structure stub stuck sub",
	"submount subnet subnets subpath subreaper subscribing subtree subvolume succeeded",
	"successful successfully such suitable suites super supplemental support supported",
	"supports sure suspend swap swapmax switch switching symbol symbolic symlink symlinkat",
	"symlinks sync syncer synchronization synchronize synchronized synchronizing syntax sys",
	"syscall syscalls sysctl sysctls syslog system systemctl systemd t table tables tag tags",
	"taking tap tar target task tasks tc tcp teardown tell temp tempfs template temporarily",
	"temporary tenant terminal terminate terminated termination test text than that the their",
	"them then there these they thin thing this those though thread threads three through thus",
	"tid tidy till time timed timens timeout timer times timestamp timestamps timezone timing",
	"tiocgptpeer tiocgwinsz tiocswinsz tls tmp tmpcopyup tmpdir tmpfile tmpfs to today",
	"together token told toml too toomanyrequests top topic topology total toward trace",
	"tracing tracking trailer trailers trailing transaction transfer transient transition",
	"transmit transport trap tree tried tries true truncate truncated trunk try trying ttrpc",
	"tty tuning turn turns twice two type types typeurl udp uid uidmapping uids ulimit umount",
	"umount2 unable uname unauthenticated unauthorized unavailable unbindable unclean unclosed",
	"uncommittable under undo unencrypted unexpected unexpectedly unhandled unhealthy unified",
	"unimplemented uninitialized unique unit unix unknown unless unlink unload unmapped",
	"unmarshal unmarshall unmarshalled unmarshalling unmount unmounted unmounting unpack",
	"unpacked unpacker unpacking unpause unprivileged unreachable unreasonably unrecognized",
	"unset unshare unsigned unsolicited unsupported untar untested until untrusted unused up",
	"update updated updates updating upload upon upper uri url us usable usage use used user",
	"userdata username userns users userspec userxattr uses using usr utf8 uts uuid v1",
	"v1alpha1 v1alpha2 v1beta1 v2 v3 valid validate validated validating validation validator",
	"value values var variable verifier verifiers verify verity version versions very veth",
	"vfork vhd vhdx via view virtual vlan vm volatile volume volumedevices volumes vrf vsock",
	"vxlan wait waited waitid waiting waitpid waits wake walk want wanted wants warn warning",
	"warnings was wasm wasn watch watchdog watcher watching way we weave websocket websockets",
	"week weight well were weren what whatever when whence where whereabouts whether which",
	"while whiteout who whole whom whose why wide wildcard will window windows wipe wiping",
	"wireguard with within without won work working workload would wouldn writable write",
	"writer writev writing wrong wrote x509 x86 xattr xdg xfs xtables year yes yet you youki",
	"your zero zfs zone zstd",
};
/* clang-format on */

/* as strcmp() of @s in lower case and the word that @word begins with */
static int compare(const unsigned char *s, size_t len, const char *word)
{
	size_t n = strcspn(word, " ");

	for (size_t i = 0; i < len && i < n; i++)
		if (ck_lower(s[i]) != (unsigned char)word[i])
			return ck_lower(s[i]) - (unsigned char)word[i];
	return (len > n) - (len < n);
}

bool ck_word_in(const char *line, const unsigned char *s, size_t len)
{
	while (*line && compare(s, len, line) != 0) {
		line += strcspn(line, " ");
		line += *line == ' ';
	}
	return *line;
}

bool ck_word_listed(const unsigned char *s, size_t len)
{
	size_t low = 0, high = CK_COUNT(lines);

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;
		if (compare(s, len, lines[mid]) < 0)
			high = mid;
		else
			low = mid;
	}
	return ck_word_in(lines[low], s, len);
}

const char *ck_words(size_t n)
{
	return n < CK_COUNT(lines) ? lines[n] : NULL;
}
