import { randomUUID } from "node:crypto";
import { makeLoginSteps, makeStatementStep, type TransactionCapabilities } from "./batch-steps.ts";
import { PostgresConnection } from "./connection.ts";
import type { BatchOutcome } from "./pipelined-batch.ts";
import { openPostgresSocket, type PostgresSocket } from "./postgres-socket.ts";
import { CollectedRows } from "./result-collectors.ts";
import type { ResultRow } from "./statement.ts";
import { StatementShape } from "./statement-shape.ts";

/** The transaction of a request: the implicit one of the statements before a Sync, or BEGIN … COMMIT. */
export type TransactionMode = "implicit" | "explicit";

/** How the caller's role and settings are set: by a function, or by a SET LOCAL for each. */
type SettingMode = "function" | "statements";

/** The capabilities of connections through a server or router. */
export type ConnectionCapabilities = TransactionCapabilities & {
  /** True if the connection has a router such as PgBouncer, which changes the session between transactions. */
  readonly isRouted: boolean;
  /** True if statements can be prepared in one transaction and used in another. */
  readonly preparesStatements: boolean;
};

/** The operator's settings; null if the service has to find out the capability. */
export type SessionSettings = {
  readonly transactionMode: TransactionMode | null;
  readonly preparedStatements: boolean | null;
  readonly settingMode: SettingMode | null;
};

type OpenSocket = () => Promise<PostgresSocket>;

const PROBE_TIMEOUT_MS = 5_000;
/** The number of sessions that run transactions at the same time, so that a router uses several backends. */
const SESSIONS = 4;
const ROUNDS = 3;
const MAX_PREPARED = 10;

const SPLIT_REQUEST =
  "The router runs the statements of one request in several sessions: unset TRANSACTION_MODE, or set it to explicit.";
const SPLIT_TRANSACTION =
  "The router does not run the statements of one transaction in one session, as PgBouncer with pool_mode = statement: let it pool transactions or sessions, or connect to Postgres itself.";
const HIDDEN_SETTINGS =
  "The database has the extension citus, whose workers would check policies without the caller's role and claims: unset CALLER_SETTINGS, or set it to statements.";
const IMPLICIT_SETTINGS =
  "The caller's role and settings are set by statements, which need BEGIN and COMMIT: unset TRANSACTION_MODE, or set it to explicit.";

const SET = new StatementShape(
  "select pg_catalog.set_config('content_service.probe',$1,true),pg_catalog.set_config('content_service.probe_too',$1,true)",
);
const FIND_CITUS = new StatementShape(
  "select from pg_catalog.pg_extension where extname operator(pg_catalog.=) 'citus'",
);
const READ = new StatementShape(
  "select pg_catalog.current_setting('content_service.probe',true),pg_catalog.pg_backend_pid()::pg_catalog.text",
);
/** The sleep is long enough that the transactions of all sessions overlap. */
const READ_SLOWLY = new StatementShape(`${READ.text},pg_catalog.pg_sleep(0.002)`);
const LEAVE = new StatementShape(
  "select pg_catalog.pg_backend_pid()::pg_catalog.text,pg_catalog.current_setting('content_service.left',true),pg_catalog.set_config('content_service.left',$1,false),pg_catalog.pg_sleep(0.002)",
);

const IMPLICIT: TransactionCapabilities = { isExplicit: false, keepsSettings: true, settingMode: "function" };
const EXPLICIT: TransactionCapabilities = { isExplicit: true, keepsSettings: true, settingMode: "function" };
/** Serves routers that refuse `reset all`, too. */
const EXPLICIT_WITHOUT_RESET: TransactionCapabilities = {
  isExplicit: true,
  keepsSettings: false,
  settingMode: "function",
};

/**
 * Finds out the capabilities of connections. With Postgres itself this is two round trips on the given connection; a
 * router is probed with several sessions. Rejects if no transaction keeps its settings, or not on all nodes: requests would run
 * without the role of their caller.
 */
export async function findConnectionCapabilities(
  socket: PostgresSocket,
  settings: SessionSettings,
  open: OpenSocket,
): Promise<ConnectionCapabilities> {
  const found = await findSessionCapabilities(socket, settings, open);
  const isDistributed = await hasCitus(socket, found);
  if (isDistributed && settings.settingMode === "function") throw new Error(HIDDEN_SETTINGS);
  if (!isDistributed && settings.settingMode !== "statements") return found;
  if (settings.transactionMode === "implicit") throw new Error(IMPLICIT_SETTINGS);
  return { ...found, isExplicit: true, settingMode: isDistributed ? "distributed" : "statements" };
}

async function findSessionCapabilities(
  socket: PostgresSocket,
  { transactionMode, preparedStatements }: SessionSettings,
  open: OpenSocket,
): Promise<ConnectionCapabilities> {
  if (await isPostgresItself(socket)) {
    const transactions = transactionMode === "explicit" ? EXPLICIT : IMPLICIT;
    return { ...transactions, isRouted: false, preparesStatements: preparedStatements ?? true };
  }
  const transactions = await chooseTransactions(transactionMode, open);
  const preparesStatements =
    preparedStatements ?? (await withSessions(open, { ...transactions, maxPrepared: MAX_PREPARED }, keepsAll));
  return { ...transactions, isRouted: true, preparesStatements };
}

/** Runs `findConnectionCapabilities` on its own connections. */
export async function probeSessions(url: string, settings: SessionSettings): Promise<ConnectionCapabilities> {
  const open = () => openPostgresSocket({ url, applicationName: "probe", connectTimeout: PROBE_TIMEOUT_MS });
  const socket = await open();
  try {
    return await findConnectionCapabilities(socket, settings, open);
  } finally {
    await socket.end();
  }
}

/** True if the session runs in the process that Postgres named at the start. */
async function isPostgresItself(socket: PostgresSocket): Promise<boolean> {
  const { outcome, rows } = await new ProbeSession(socket, IMPLICIT).setAndRead(READ);
  if (outcome.kind === "lost") throw outcome.cause;
  return rows[0]?.[1] === String(socket.processId);
}

async function hasCitus(socket: PostgresSocket, transactions: TransactionCapabilities): Promise<boolean> {
  const { outcome, rows } = await new ProbeSession(socket, transactions).run([FIND_CITUS]);
  if (outcome.kind === "lost") throw outcome.cause;
  if (outcome.kind === "refused") throw outcome.error;
  return rows.length > 0;
}

async function chooseTransactions(mode: TransactionMode | null, open: OpenSocket): Promise<TransactionCapabilities> {
  const isImplicit = mode !== "explicit" && (await withSessions(open, IMPLICIT, keepsAll));
  if (mode === "implicit" && !isImplicit) throw new Error(SPLIT_REQUEST);
  // Some requests need BEGIN, and a Sync before COMMIT, in any mode. `failed` makes the probe use that Sync.
  READ_SLOWLY.failed();
  if (await withSessions(open, EXPLICIT, keepsAll)) {
    if (isImplicit) return IMPLICIT;
    return (await withSessions(open, EXPLICIT_WITHOUT_RESET, wipesSettings)) ? EXPLICIT_WITHOUT_RESET : EXPLICIT;
  }
  if (await withSessions(open, EXPLICIT_WITHOUT_RESET, keepsAll)) return EXPLICIT_WITHOUT_RESET;
  throw new Error(SPLIT_TRANSACTION);
}

type ProbeCapabilities = TransactionCapabilities & { readonly maxPrepared?: number };
type ProbeWork<T> = (sessions: readonly ProbeSession[]) => Promise<T>;

/** Repeats the probe if a session is lost: the probe may cause the loss, or a failover, which hardly occurs twice. */
async function withSessions<T>(open: OpenSocket, capabilities: ProbeCapabilities, work: ProbeWork<T>): Promise<T> {
  const { result, isAnyLost } = await tryWithSessions(open, capabilities, work);
  return isAnyLost ? (await tryWithSessions(open, capabilities, work)).result : result;
}

async function tryWithSessions<T>(
  open: OpenSocket,
  capabilities: ProbeCapabilities,
  work: ProbeWork<T>,
): Promise<{ readonly result: T; readonly isAnyLost: boolean }> {
  const opened = await Promise.allSettled(Array.from({ length: SESSIONS }, open));
  const sockets = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  if (sockets.length === 0) throw (opened[0] as PromiseRejectedResult).reason;
  const sessions = sockets.map((socket) => new ProbeSession(socket, capabilities));
  try {
    const result = await work(sessions);
    return { result, isAnyLost: sessions.some(({ isLost }) => isLost) };
  } finally {
    await Promise.all(sockets.map((socket) => socket.end()));
  }
}

/** Runs a transaction on all sessions at once, for several rounds, each in another order. */
async function inRounds(
  sessions: readonly ProbeSession[],
  run: (session: ProbeSession) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([...sessions.slice(round), ...sessions.slice(0, round)].map(run));
  }
}

/** True if each transaction reads its own settings. */
async function keepsAll(sessions: readonly ProbeSession[]): Promise<boolean> {
  let isKept = true;
  await inRounds(sessions, async (session) => {
    const { outcome, rows, token } = await session.setAndRead(READ_SLOWLY);
    isKept &&= outcome.kind === "done" && rows[0]?.[0] === token;
  });
  return isKept;
}

/** True if a backend ran several transactions, and the session settings of the previous one were gone each time. */
async function wipesSettings(sessions: readonly ProbeSession[]): Promise<boolean> {
  const known = new Set<string>();
  let [wiped, kept] = [0, 0];
  await inRounds(sessions, async (session) => {
    const { rows } = await session.run([LEAVE], "left");
    const [pid, left] = rows[0] ?? [];
    if (left) kept++;
    else if (pid && known.has(pid)) wiped++;
    if (pid) known.add(pid);
  });
  return wiped > 0 && kept === 0;
}

type ProbeReply = {
  readonly outcome: BatchOutcome;
  readonly rows: readonly ResultRow[];
  readonly token: string;
};

class ProbeSession {
  readonly #socket: PostgresSocket;
  readonly #connection: PostgresConnection;

  constructor(socket: PostgresSocket, capabilities: ProbeCapabilities) {
    const { maxPrepared = 0, ...transactions } = capabilities;
    this.#socket = socket;
    const events = { ready() {}, lost() {} };
    this.#connection = new PostgresConnection(socket, events, { depth: 1, maxPrepared, transactions });
  }

  get isLost(): boolean {
    return this.#connection.isClosed;
  }

  setAndRead(read: StatementShape): Promise<ProbeReply> {
    return this.run([SET, read], randomUUID());
  }

  /** Runs the statements in one transaction. The first statement gets the token, if any, as its parameter; the rows of the last one are returned. */
  run(shapes: readonly StatementShape[], token = ""): Promise<ProbeReply> {
    const rows = CollectedRows.ofStrings();
    const steps = makeLoginSteps(
      shapes.map((shape, index) => {
        const values = index === 0 && token !== "" ? [token] : [];
        return makeStatementStep(shape, { text: shape.text, values }, { sync: index === shapes.length - 1 });
      }),
    );
    return new Promise((resolve) => {
      const late = setTimeout(() => this.#socket.destroy(), PROBE_TIMEOUT_MS);
      const end = (outcome: BatchOutcome) => {
        clearTimeout(late);
        resolve({ outcome, rows: rows.rows, token });
      };
      this.#connection.send({
        steps,
        main: steps.length - 1,
        mainCount: 1,
        collector: rows,
        wantsFields: false,
        fresh: false,
        keepsTransaction: false,
        responseTimeoutMs: PROBE_TIMEOUT_MS,
        expected: 0,
        interruptible: null,
        isAbandoned: false,
        admits: () => true,
        end,
      });
    });
  }
}
