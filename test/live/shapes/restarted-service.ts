import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isChangeMessage, type Row, Shape, ShapeStream } from "@electric-sql/client";
import pg from "pg";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { type Program, startGateway, stopped } from "../../program.ts";
import { token } from "../../realtime/service.ts";

type FollowOptions = {
  readonly table: string;
  readonly claims: object;
  readonly where?: string;
  readonly liveSse?: boolean;
  readonly log?: "changes_only";
};

export type ShapeFollower = {
  readonly stream: ShapeStream<Row>;
  readonly shape: Shape<Row>;
  /** The rows, each as JSON, sorted. */
  rows(): string[];
  /** Returns the rows that it was sent, also for updates, since the last call. */
  takeReceived(): string[];
  /** Returns the number of times that it had to begin anew. */
  refetches(): number;
};

/** A service whose clients find it again after each restart, at any port. */
export type RestartedService = {
  readonly folder: string;
  program(): Program;
  restart(signal: NodeJS.Signals, whileDown?: () => Promise<unknown>): Promise<void>;
  follow(options: FollowOptions): ShapeFollower;
  headersOf(claims: object): { authorization: string };
  close(): Promise<void>;
};

export type RestartedFixture = RestartedService & { readonly owner: pg.Client };

/** Opens the fixture on a database of its own. */
export async function openRestartedFixture(
  schema: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<RestartedFixture> {
  const database = await cloneDatabase("content");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(schema);
  const service = await openRestartedService(database, settings);
  return {
    ...service,
    owner,
    async close() {
      await service.close();
      await owner.end();
      await database.drop();
    },
  };
}

export async function openRestartedService(
  database: Pick<TestDatabase, "url" | "ownerUrl">,
  settings: Readonly<Record<string, string>> = {},
): Promise<RestartedService> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-shapes-"));
  const start = () =>
    startGateway(database, { DATA_DIR: folder, REST_REQUIRE_APIKEY: "false", DRAIN_TIMEOUT_SECONDS: "0", ...settings });
  let program = await start();
  const abort = new AbortController();
  return {
    folder,
    program: () => program,
    async restart(signal, whileDown) {
      await stopped(program, signal);
      await whileDown?.();
      program = await start();
    },
    follow: (options) => followShape(options, () => program.url, abort.signal),
    headersOf,
    async close() {
      abort.abort();
      await program.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const headersOf = (claims: object) => ({
  authorization: `Bearer ${token({ role: "authenticated", iat: 1, ...claims })}`,
});

export function followShape(options: FollowOptions, url: () => string, signal: AbortSignal): ShapeFollower {
  const { table, where, claims, liveSse = false, log } = options;
  let refetches = 0;
  const stream = new ShapeStream<Row>({
    url: "http://service/v1/shape",
    params: { table, replica: "full", ...(where !== undefined && { where }) },
    headers: headersOf(claims),
    liveSse,
    signal,
    ...(log && { log, offset: "now" as const }),
    backoffOptions: { initialDelay: 20, maxDelay: 200, multiplier: 2 },
    async fetchClient(input, init) {
      const response = await fetch(String(input).replace("http://service", url()), init);
      if (response.status === 409) refetches++;
      return response;
    },
  });
  const received: string[] = [];
  stream.subscribe((messages) => {
    for (const message of messages)
      if (isChangeMessage(message) && message.headers.operation !== "delete")
        received.push(JSON.stringify(message.value));
  });
  const shape = new Shape<Row>(stream as ConstructorParameters<typeof Shape<Row>>[0]);
  return {
    stream,
    shape,
    rows: () => shape.currentRows.map((row) => JSON.stringify(row)).toSorted(),
    takeReceived: () => received.splice(0),
    refetches: () => refetches,
  };
}

/** Returns all rows of a shape for its caller, in the form of a follower. */
export async function readShapeAs(
  owner: pg.Client,
  { table, where, claims }: Required<Pick<FollowOptions, "table" | "where" | "claims">>,
): Promise<string[]> {
  await owner.query("begin");
  await owner.query("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)", [
    JSON.stringify({ role: "authenticated", ...claims }),
  ]);
  const { rows } = await owner.query(`select * from public.${table} where ${where}`);
  await owner.query("rollback");
  return rows.map((row) => JSON.stringify(row)).toSorted();
}
