/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_BASE_LIMITS_H
#define CK_BASE_LIMITS_H
/* Every limit of crikeep, with its reason. What exceeds a limit fails with a clear error; nothing
 * that matters is cut. */

#define CK_NS_PER_MS UINT64_C(1000000)
#define CK_NS_PER_S  UINT64_C(1000000000)

/* requests and replies */
#define CK_REQUEST_MAX     (16u << 20) /* the limit of the kubelet and of containerd */
/* the response of a create is one id of 64 digits; unknown fields may follow */
#define CK_REPLY_MAX       (64u << 10)
#define CK_ID_MAX          1024u       /* runtimes use 64; CRI sets no limit */
#define CK_NAME_MAX_LEN    1024u       /* Kubernetes names end at 253, uids at 36 or 63 */
#define CK_PATH_DEPTH_MAX  16u         /* messages inside messages; CRI v1 has 6 */
#define CK_FIELDS_MAX      65536u      /* fields of one request; a real pod has 60 to 500 */
/* bytes of a request whose digests take 1 us: they are made even if nobody needs them */
#define CK_DIGESTS_EARLY   2048u
#define CK_DIFF_PATHS_MAX  16u         /* paths named in an error, before "and N more" */
#define CK_STAGE_MAX       64u         /* the longest known stage has 37 bytes */
#define CK_TEXT_MAX        256u        /* a text from a runtime, CNI or plugin, redacted */
/* status message and details that are kept for waiters: one HTTP/2 header block */
#define CK_STATUS_MAX      (64u << 10)
/* unknown sandboxes whose stop is remembered, in memory: twice the pods of the largest nodes */
#define CK_STOPS_MAX       1024u
/* so much can be had: then SQLite, whose pages have 4 KiB, is not short of memory either */
#define CK_MEMORY_PROBE    (64u << 10)
#define CK_TOLD_MAX        4096u       /* names of notified plugins: 100 of 40 bytes */
/* bytes of a text that are read; at most CK_TEXT_MAX are shown, and hidden ones join */
#define CK_REDACT_READ     2048u
/* fewer digits are in too many values to tell anything: an exit code, a descriptor */
#define CK_REDACT_MIN      4u
/* a whole value that is one listed word is hidden from here; passwords are rarely shorter */
#define CK_REDACT_LONG     8u
#define CK_REDACT_DIGITS   20u         /* of the longest number: 2^64 */
/* what is looked for in the request: an id has 175, a word one to four; long errors have 200 */
#define CK_REDACT_CLUES    4096u
#define CK_REDACT_ROW      4u          /* punctuation in a row; prose has three: '": "' */

/* the daemon */
/* the longest message that crikeepd reads, besides creates; also CRI-O's limit */
#define CK_LIST_MAX        (80u << 20)
/* three lists of that size at once; a client that stops reading gets no more */
#define CK_CLIENT_MEMORY   (256u << 20)
/* held for one call that is passed on: 15 MiB take 26 ms, and 200 stalled readers fit */
#define CK_STREAM_WINDOW   (256u << 10)
/* advertised, so that a longer error text fails its call and not the connection */
#define CK_HEADER_LIST_MAX 65536u
/* of a client: who sends more in one list loses the connection. The list is decoded to its end, and
 * 16 KiB of frames can name 40 MB; this takes 0.1 ms at most */
#define CK_HEADER_LIST_END (4 * CK_HEADER_LIST_MAX)
#define CK_HEADERS_END     512u
/* of a connection, bytes of lists that belong to no call: a client sends such a list only when we
 * have just ended its call or the connection */
#define CK_HEADERS_UNHEARD 16384u
/* ids in one list of a request, each of which is looked up: the containers of a pod */
#define CK_LISTED_IDS_MAX  256u
/* added to the two texts of each header when HTTP/2 measures a list */
#define CK_HEADER_EXTRA    32u
#define CK_HEADERS_MAX     128u        /* in one block; a kubelet sends 8 to 12, tracing adds 2 */
/* given back as bytes come in, so it bounds nothing; large, so that this is rare */
#define CK_CONNECTION_WINDOW (16 << 20)
/* waiting for a full socket, which is not read meanwhile: the answers of 500 creates */
#define CK_FRAMES_WAITING  1024u
/* lists, statuses and the like of one process that are at the runtime at a time; the others wait. A
 * kubelet has one for each pod at most, and of a runtime that takes 2 ms for each, another process
 * waits for 250 ms then */
#define CK_ASKING_MAX      128u
/* of these, sent so short a time ago that they may still be in the runtime's queue, where everybody
 * waits behind them; what takes longer takes its time by itself. A process still has 320 a second
 * of a slow runtime */
#define CK_ASKING_FRESH    8u
#define CK_ASKING_SLOW     (25 * CK_NS_PER_MS)
/* connections of clients; a kubelet has 2, and each agent one or two. With 16384 descriptors there
 * are always some for the runtime */
#define CK_CLIENTS_MAX     512u        /* limits.connections, unless it is set */
#define CK_CLIENTS_MOST    8192u       /* it is at most half of the descriptors */
#define CK_PROCESS_CLIENTS 64u         /* of one process, or of one user who is not root */
#define CK_CLIENT_SUBS     4u          /* to events, of one connection; a kubelet has one */
/* calls under way, of which most are creates that wait: eight for each pod of a full node */
#define CK_PROCESS_CALLS   4096u
#define CK_PROCESS_CALLS_LEAST 256u /* a kubelet's that creates all pods of a full node at once */
/* of all processes; and streams of a connection: who waits for many creates can still list */
#define CK_CALLS_MAX       16384u
/* memory is given back to the system so long after a connection has ended, or after so many calls
 * were under way and are few again; that takes 1 ms */
#define CK_BURST_CALLS     512u
#define CK_BURST_LOOK      (10 * CK_NS_PER_S)
/* between two lines of the log that refuse for the same cause */
#define CK_REFUSAL_PAUSE   (10 * CK_NS_PER_S)
#define CK_STREAMS_MAX     0x7fffffffu /* what a peer allows before it has said so */
/* queued for one subscriber: twice its window, and 200 commits of full pods */
#define CK_EVENTS_QUEUED   (1u << 20)
/* ids whose CREATED and STARTED a subscriber got; a late event comes within fewer commits */
#define CK_EVENTS_TOLD     1024u
/* commits whose status is asked for at once, as a kubelet's pod workers would */
#define CK_ANNOUNCE_MAX    8u
/* a freed block of this size goes back to the system, and so does more than twice as much that is
 * free at the end of the heap. A buffer for a list of 500 pods has 256 KiB; a page fault for each
 * page, for each list, would take as long as the rest */
#define CK_MAP_FROM        (512u << 10)
#define CK_SOCKET_READ     (64u << 10) /* bytes read at once */
/* of a client, before others have their turn: 2,000 of the shortest frames take 0.2 ms */
#define CK_CLIENT_READ     (16u << 10)
/* sockets that are read before timers, signals and everything else have their turn */
#define CK_SOCKETS_AT_ONCE 64u
/* pauses before the runtime is dialled again; they double, as cri-client's do */
/* between two looks whether the runtime answers: a silent one is named at the second, in 8 s */
#define CK_ANSWERS_LOOK    (4 * CK_NS_PER_S)
/* a question that nobody answers stays for so long: a second one would only wait beside it */
#define CK_ANSWERS_TIMEOUT (3600 * CK_NS_PER_S)
#define CK_CONNECT_MIN     (100 * CK_NS_PER_MS)
#define CK_CONNECT_MAX     (3 * CK_NS_PER_S)
#define CK_PATH_MAX        4096u       /* a file's path: PATH_MAX */
#define CK_START_TIMEOUT   (60 * CK_NS_PER_S)   /* for the runtime of a starting node */
/* a create may take at least this much longer than its caller waits */
#define CK_CREATE_EXTRA    (30 * CK_NS_PER_S)
#define CK_ASK_TIMEOUT     (30 * CK_NS_PER_S)   /* for our own lists and statuses */
/* to stop a pod whose removal has no deadline; grace periods are shorter */
#define CK_STOP_MAX        (600 * CK_NS_PER_S)
/* when no descriptor is left; clients wait in the queue of the socket */
#define CK_ACCEPT_PAUSE    (100 * CK_NS_PER_MS)
/* between SIGTERM and the end: a list that is under way is answered */
#define CK_STOP_SETTLE     (100 * CK_NS_PER_MS)
/* shadow: true: creates that were cut off and are remembered, to know one that comes again: four
 * for each pod of a full node. They are compared one by one */
#define CK_SHADOWS_MAX     2048u
/* connections of earlier lives that are kept open: systemd ends a loop of quick failures after
 * three, and slower lives decide what earlier ones left. FileDescriptorStoreMax= of the unit is
 * larger by those of one life */
#define CK_HELD_MAX        16u
/* between two looks whether they still carry something */
#define CK_HELD_LOOK       (1 * CK_NS_PER_S)
/* of a call that was refused without being begun; GOAWAYs may follow each other closely */
#define CK_SEND_AGAIN_MAX  8u
#define CK_RETRY_LIST      (1 * CK_NS_PER_S)    /* after a list failed at start or reconnect */
/* after the deadline; an answer that nobody has complained about by then has arrived (K7) */
#define CK_ANSWER_SETTLE   (1 * CK_NS_PER_S)
/* for a fork and an exec; nothing else is served meanwhile */
#define CK_LAUNCH_WAIT     (1 * CK_NS_PER_S)
/* the exporter and `crikeep status` wait so long for the text; Prometheus gives up after 10 s */
#define CK_METRICS_WAIT    (3 * CK_NS_PER_S)
/* `crikeep status` waits so long for the runtime's Version; a healthy one takes 1 ms */
#define CK_VERSION_WAIT    (2 * CK_NS_PER_S)
/* what `crikeep doctor` reads of one file: a kubelet's configuration has 2 KiB, a command line is
 * rarely longer */
#define CK_DOCTOR_FILE_MAX (1u << 20)
#define CK_DOCTOR_WORDS_MAX 256u               /* of a command line: kubelets have 10 to 40 */
/* the longest text the exporter accepts; it has about 25 KiB */
#define CK_METRICS_MAX     (1u << 20)
#define CK_METRICS_END     "# EOF\n"            /* its last line; without it the text is cut */
/* for the start of crikeep-sim, which waits up to 2 s for an earlier one to end */
#define CK_SIMULATOR_WAIT  (10 * CK_NS_PER_S)
/* events queued for one subscriber of the simulated runtime; more end its stream */
#define CK_SIM_EVENTS_MAX  (16u << 20)
/* objects that it has from the start: a hundred times those of a node */
#define CK_SIM_COUNT_MAX   1000000u
#define CK_SIM_SIZE_MAX    (1u << 30)  /* of a message or text that it is told to make or accept */

#define CK_CONF_FILE_MAX   (256u << 10) /* crikeep.yaml with every key explained has 8 KiB */
/* of one list (uids, patterns); no node has so many agents */
#define CK_CONF_ITEMS_MAX  256u
#define CK_CONF_VALUE_MAX  4096u        /* of one value: PATH_MAX */
#define CK_SOCKET_PATH_MAX 107u         /* sun_path without its NUL */
/* for our own sockets, which are bound as ".NAME.new" and renamed */
#define CK_LISTEN_PATH_MAX (CK_SOCKET_PATH_MAX - 5u)
/* below PIPE_BUF, so a pipe takes it whole or not at all; an error has at most 512 */
#define CK_LOG_LINE        2048u
/* a line as JSON, below PIPE_BUF as well; its text is cut if need be */
#define CK_LOG_JSON        4080u
/* what a line is about, as JSON: names as long as Kubernetes' have 700 bytes in all */
#define CK_LOG_MEMBERS     1024u
#define CK_LOG_SAME        8u           /* lines remembered; each is written once a second */

/* NRI */
/* the most that Go's side writes: a ttrpc message of 4 MiB with its header */
#define CK_MUX_FRAME_MAX   4194314u
#define CK_MUX_FIRST       4096u    /* first frame of a message: the buffer of Go's reader */
#define CK_TTRPC_MAX       (4u << 20) /* one message with its envelope: ttrpc's limit */
/* part of it, for what is around a list: service, method, lengths, timeout need 80 */
#define CK_TTRPC_ENVELOPE  256u
#define CK_TTRPC_CALLS_MAX 64u      /* a plugin's unanswered calls; a sane one has one */
/* not read yet by a plugin: a list, an event and two answers, each of 4 MiB */
#define CK_TTRPC_OUT_MAX   (16u << 20)
/* registered or launched; their names fit into the list of one entry (CK_TOLD_MAX) */
#define CK_NRI_PLUGINS_MAX 60u
/* connections that have not registered; the oldest makes room. A plugin registers at once, so all
 * plugins of a node may connect in the same moment */
#define CK_NRI_UNREGISTERED_MAX 64u
/* of those that are gone, whose last errors are shown; the oldest make room */
#define CK_NRI_GONE_MAX    16u
/* a create request that plugins change, unpacked: 16 MiB of texts take 64 */
#define CK_APPLY_MAX       (256u << 20)
/* what the kernel tells of one device; it has at most 2 KiB (UEVENT_BUFFER_SIZE) */
#define CK_UEVENT_MAX      2048u
#define CK_NRI_NAME_MAX    63u      /* "NN-name"; plugins have 10 to 30 */
/* events that wait for one late plugin; more disconnect it (H5) */
#define CK_NRI_QUEUE_MAX   1024u
/* containers that the answers to one event may update or evict: ten times those of a node */
#define CK_NRI_CHANGES_MAX 1024u
/* mounts, variables and so on of one container that they may change; an env has hundreds */
#define CK_NRI_ENTRIES_MAX 4096u
/* these and the container, unpacked; or what a host writes or reads by names of fields: a message
 * of 4 MiB takes 10 to 40 */
#define CK_NRI_MERGE_MAX   (64u << 20)
/* descriptions asked of the host at once; it makes as many calls for evictions */
#define CK_NRI_DESCRIBE_AT_ONCE 8u
/* the JSON in a verbose status; containerd's has 10 to 40 KiB, and more than 4 MiB does not fit
 * into a message to a plugin */
#define CK_INFO_MAX        (4u << 20)
#define CK_INFO_PARTS_MAX  32768u   /* objects, arrays and their parts; a seccomp profile has 600 */
/* json-c's limit; arguments of system calls in a seccomp profile are at 8 */
#define CK_INFO_DEPTH_MAX  32
/* adjusted requests that are remembered; a busy node loses fewer creations at once */
#define CK_NRI_CONSULTED_MAX 64u
#define CK_NRI_CONFIG_MAX  (1u << 20) /* a drop-in file, sent in one message */
#define CK_NRI_REGISTRATION_TIMEOUT (5 * CK_NS_PER_S)  /* * Go's */
#define CK_NRI_REQUEST_TIMEOUT      (2 * CK_NS_PER_S)  /* * Go's */
/* * critest's plugin takes a little over 2 s */
#define CK_NRI_SYNCHRONIZE_TIMEOUT  (10 * CK_NS_PER_S)
/* an overdue plugin has so many request_timeouts more, 10 s by default, and is disconnected (H5):
 * nobody waits for it, and one that hangs may recover by connecting anew */
#define CK_NRI_OVERDUE_TIMES        5u
#define CK_NRI_DESCRIBE_AGAIN       (250 * CK_NS_PER_MS) /* doubling, to 2 s */
/* if an object is not described for so long, although the runtime answers, the event fails */
#define CK_NRI_DESCRIBE_MAX         (30 * CK_NS_PER_S)
#define CK_NRI_EVICT_GRACE          (30 * CK_NS_PER_S)   /* * Kubernetes' default */
/* between two looks for containers that have ended, as a kubelet does */
#define CK_NRI_EXITS_PAUSE          (1 * CK_NS_PER_S)
/* between two writes of the status file */
#define CK_NRI_STATUS_PAUSE         (1 * CK_NS_PER_S)
/* the status file; 60 plugins with the longest texts make 97 KiB */
#define CK_STATUS_FILE_MAX (256u << 10)

/* the store */
/* of one round, for which memory is kept until the next; 20 KiB, what 16 pods leave */
#define CK_HISTORY_ROOM    64u
#define CK_HISTORY_ROWS    100000u     /* about 20 MiB: a week of a busy node */
/* bytes of WAL before the owner checkpoints in the middle of work */
#define CK_WAL_LIMIT       (4u << 20)
/* bytes of WAL that an idle owner leaves: creations write the same few pages again and again */
#define CK_WAL_IDLE        (128u << 10)
/* bytes of WAL that somebody else pins, before log and metrics name him */
#define CK_WAL_PINNED      (4 * CK_WAL_LIMIT)
/* bytes of database and WAL that are copied to be read; a full history is 20 MiB */
#define CK_COPY_MAX        (1u << 30)
/* bytes of a -shm that SQLite has made. A shorter one it would wait for, for 10 s */
#define CK_SHM_MIN         (32u << 10)
/* a copy without locks fails if the files change meanwhile */
#define CK_COPY_TRIES      100
#define CK_COPY_PAUSE      (10 * (long)CK_NS_PER_MS) /* between two tries */
/* without a write, before files rest; their dates go by ticks, of 10 ms at most */
#define CK_COPY_REST       (20 * (int64_t)CK_NS_PER_MS)
#define CK_COPY_FIRST      8 /* pages before ck_copy_hook */
#define CK_ADMIN_REQUEST_MAX        4096u       /* bytes of one request */
#define CK_ADMIN_REQUESTS_MAX      256u        /* requests read in one round */
#define CK_KEY_BYTES       32u         /* the digest key file */

/* time (nanoseconds); those marked * are defaults of struct ck_options */
/* * the longest wait of the kubelet and its pause are 240 + 15 s */
#define CK_TTL              (600 * CK_NS_PER_S)
/* * without one, a hung CNI plugin would never be killed */
#define CK_CREATE_DEADLINE  (900 * CK_NS_PER_S)
#define CK_LOST_GRACE       (30 * CK_NS_PER_S)  /* * */
#define CK_SUPERSEDE_WAIT   (20 * CK_NS_PER_S)  /* * */
#define CK_DESTROY_TIMEOUT  (60 * CK_NS_PER_S)  /* * */
/* the margin before a deadline: an answer takes time to arrive (K2); crictl's shortest deadline is
 * 2 s */
#define CK_MARGIN_MIN       (250 * CK_NS_PER_MS)
#define CK_MARGIN_MAX       (1 * CK_NS_PER_S)
#define CK_MARGIN_PERCENT   2u
/* until the host is asked again whether a kept result is alive, if it did not know (K6) */
#define CK_INSPECT_AGAIN    (500 * CK_NS_PER_MS)
/* pauses between the lists in which a lost creation is looked for; they double (K8) */
#define CK_LIST_AGAIN_MIN   (250 * CK_NS_PER_MS)
#define CK_LIST_AGAIN_MAX   (5 * CK_NS_PER_S)
/* after so long an absence a waiting turn may send its request once more (K8) */
#define CK_RESEND_AFTER     (5 * CK_NS_PER_S)
/* pauses between tries to destroy (K18), and to write a row that the database refuses; they
 * double */
#define CK_BACKOFF_MIN      (1 * CK_NS_PER_S)
#define CK_BACKOFF_MAX      (60 * CK_NS_PER_S)
/* how long the id of what was destroyed stays hidden, for lists that are older (K21) */
#define CK_TOMBSTONE        (60 * CK_NS_PER_S)
/* nothing expires so soon after the start: nobody could repeat while we were down (K15) */
#define CK_OPEN_GRACE       (60 * CK_NS_PER_S)
/* after a gap of this length the loop serves clients before timers (K15) */
#define CK_GAP              (1 * CK_NS_PER_S)
/* hand_back: offer: so many sandboxes become visible at once, then one for each gap (K2). A
 * kubelet starts containers in all it sees, and with 20 starts at once some took over 3 s. */
#define CK_OFFERS_AT_ONCE   5
#define CK_OFFER_GAP        (200 * CK_NS_PER_MS)
/* between two tries to write, and to read, a database that cannot be written or read (K32) */
#define CK_RETRY_WRITE      (1 * CK_NS_PER_S)
/* how long a runtime that embeds the cache creates before the database says so (K29): two or three
 * times what a creation takes on an idle node. A crash within this time leaves no trace of it, so
 * not longer */
#define CK_BEGUN_WAITS      (200 * CK_NS_PER_MS)
/* how much later than its time a result may expire (K28) */
#define CK_TTL_SLACK        (50 * CK_NS_PER_MS)

/* `crikeep explain` looks at processes */
#define CK_PROCESSES_MAX    65536u  /* twice the pids of a full node */
#define CK_PROCESS_STAT_MAX 1024u   /* its line has 52 numbers of at most 20 digits */
#define CK_PROCESS_STATUS_MAX 16384u
/* an environment, a command line: the kernel takes 128 KiB for one text; runtimes give a few KiB */
#define CK_PROCESS_TEXT_MAX (256u << 10)
#define CK_PROCESS_THREADS_MAX 1024u /* a busy containerd has 50 to 300 */
#define CK_PROCESS_SOCKETS_MAX 16384u /* LimitNOFILE= of crikeepd.service */
#define CK_UNIX_SOCKETS_MAX 65536u
/* the specification of a container that is being created, in JSON; it has 10 to 60 KiB */
#define CK_BUNDLE_MAX       (1u << 20)
#define CK_SUSPECTS_MAX     64u     /* processes of one pod that may be the cause: 1 to 10 */
#define CK_CULPRITS_MAX     4u      /* of them that are named */
#define CK_ANCESTORS_MAX    8u      /* from a plugin to its last child: 1 to 3 */
/* reading of a process can hang if its memory waits for a disk */
#define CK_CULPRIT_WAIT     (2 * CK_NS_PER_S)
/* until a process that was killed has ended, if it ever does */
#define CK_CULPRIT_DIE      (100 * CK_NS_PER_MS)
/* why nobody is named, in words, with the names of two processes */
#define CK_CULPRIT_TEXT_MAX 512u
/* in state D, in the same sleep, for so long: any read of a disk is so for less */
#define CK_CULPRIT_LOOK     (30 * CK_NS_PER_MS)

/* crikeep(1): so much of an id must be given to change something; fewer digits meet by chance */
#define CK_ID_PREFIX_MIN    4u

/* a year; the sum of a few does not overflow */
#define CK_DURATION_MAX     (31536000 * CK_NS_PER_S)
/* at least, for our threads, which call the host; its default may be 16 KiB */
#define CK_THREAD_STACK     (256u * 1024)
/* objects destroyed at once: a busy node must not get too many removals (K18) */
#define CK_DESTROYS_MAX     8u

#endif
