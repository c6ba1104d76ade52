// Deno's driver for Postgres (deno.land/x/postgres, jsr:@db/postgres) on the driver of this service.

import pg from "pg";
import { toBytes } from "./bytes.ts";

type QueryArguments = readonly unknown[] | Readonly<Record<string, unknown>>;
type QueryOptions = {
  readonly text: string;
  readonly args?: QueryArguments;
  /** The names of the columns, in `queryObject`. */
  readonly fields?: readonly string[];
  readonly camelCase?: boolean;
};
type Query = string | TemplateStringsArray | QueryOptions;
type ClientOptions = {
  readonly hostname?: string;
  readonly port?: number | string;
  readonly user?: string;
  readonly password?: string;
  readonly database?: string;
  readonly applicationName?: string;
  readonly tls?: {
    readonly enabled?: boolean;
    readonly enforce?: boolean;
    readonly caCertificates?: readonly string[];
  };
};
type QueryResult<Row> = {
  readonly rows: Row[];
  readonly rowCount: number | undefined;
  readonly command: string;
};

const { builtins } = pg.types;
/** Types that the driver of Deno returns in another form than that of Node. */
const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [builtins.INT8, BigInt],
  [builtins.BYTEA, (text: string) => new Uint8Array(pg.types.getTypeParser(builtins.BYTEA)(text) as Buffer)],
  [builtins.INTERVAL, String],
]);
const types = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    (format !== "binary" && PARSERS.get(oid)) || pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/** TLS is used where `sslmode` of the URL, `tls.enforce` or `tls.caCertificates` requires it. */
function toConfig(options: ClientOptions | string | undefined): pg.ClientConfig {
  if (typeof options === "string") return { connectionString: options, types };
  const { hostname, port, user, password, database, applicationName, tls } = options ?? {};
  return {
    types,
    ...(hostname !== undefined && { host: hostname }),
    ...(port !== undefined && { port: Number(port) }),
    ...(user !== undefined && { user }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { database }),
    ...(applicationName !== undefined && { application_name: applicationName }),
    ...(tls && { ssl: toTls(tls) }),
  };
}

function toTls({ enabled, enforce, caCertificates = [] }: NonNullable<ClientOptions["tls"]>): pg.ClientConfig["ssl"] {
  if (enabled === false) return false;
  if (caCertificates.length > 0) return { ca: [...caCertificates] };
  return enforce === true;
}

/** Converts a text, a template or options, and their arguments, to a text with numbered parameters. */
function toStatement(query: Query, args: readonly unknown[]): QueryOptions & { readonly values: unknown[] } {
  if (Array.isArray(query)) {
    const text = query.reduce((before: string, part: string, index) => `${before}$${index}${part}`);
    return { text, values: args.map(toParameter) };
  }
  const options =
    typeof query === "string" ? { text: query, args: args[0] as QueryArguments } : (query as QueryOptions);
  const given = options.args ?? [];
  if (Array.isArray(given)) return { ...options, values: given.map(toParameter) };
  const names: string[] = [];
  const byName = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  const text = options.text.replaceAll(/\$([a-z_]\w*)/gi, (match, name: string) => {
    const key = name.toLowerCase();
    if (!byName.has(key)) return match;
    if (!names.includes(key)) names.push(key);
    return `$${names.indexOf(key) + 1}`;
  });
  return { ...options, text, values: names.map((name) => toParameter(byName.get(name))) };
}

function toParameter(value: unknown): unknown {
  return value instanceof Uint8Array ? toBytes(value) : value;
}

function toCamelCase(name: string): string {
  return name.replaceAll(/_+(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** An error of Postgres, with its code (`fields.code`), detail and further fields. */
export class PostgresError extends Error {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(error: pg.DatabaseError) {
    super(error.message, { cause: error });
    this.name = "PostgresError";
    this.fields = { ...error, message: error.message };
  }
}

function toDriverError(error: unknown): unknown {
  return error instanceof pg.DatabaseError ? new PostgresError(error) : error;
}

type Run = (config: pg.QueryArrayConfig) => Promise<pg.QueryArrayResult>;

/** The queries of a client, and of its transactions. */
class Queryable {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  async queryArray<Row = unknown[]>(query: Query, ...args: readonly unknown[]): Promise<QueryResult<Row>> {
    return (await this.#query<Row>(toStatement(query, args))).result;
  }

  async queryObject<Row = Record<string, unknown>>(
    query: Query,
    ...args: readonly unknown[]
  ): Promise<QueryResult<Row>> {
    const statement = toStatement(query, args);
    const { result, columns } = await this.#query<unknown[]>(statement);
    const names = statement.fields ?? (statement.camelCase ? columns.map(toCamelCase) : columns);
    if (names.length !== columns.length && result.rows.length > 0)
      throw new RangeError("The fields provided do not match the number of columns of the result");
    if (new Set(names).size !== names.length)
      throw new Error("Several columns of the result have the same name; use aliases, or the option fields");
    const rows = result.rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]])) as Row);
    return { ...result, rows };
  }

  async #query<Row>({ text, values }: ReturnType<typeof toStatement>) {
    const done = await this.#run({ text, values, rowMode: "array" }).catch((error) => {
      throw toDriverError(error);
    });
    // A text of several statements has a result for each.
    const { rows, rowCount, command, fields } = [done].flat().at(-1)!;
    const result: QueryResult<Row> = { rows: rows as Row[], rowCount: rowCount ?? undefined, command };
    return { result, columns: fields.map(({ name }) => name) };
  }
}

type TransactionOptions = {
  readonly isolation_level?: "read_committed" | "repeatable_read" | "serializable";
  readonly read_only?: boolean;
};

/** A transaction. As in Deno, an error in it ends it. */
export class Transaction extends Queryable {
  readonly name: string;
  readonly #control: (text: string) => Promise<unknown>;
  readonly #options: TransactionOptions;

  constructor(name: string, options: TransactionOptions, run: Run) {
    super(async (config) => {
      try {
        return await run(config);
      } catch (error) {
        await this.#control("rollback");
        throw error;
      }
    });
    this.name = name;
    this.#options = options;
    this.#control = (text) => run({ text, rowMode: "array" });
  }

  async begin(): Promise<void> {
    const { isolation_level = "read_committed", read_only = false } = this.#options;
    const level = isolation_level.replace("_", " ");
    await this.#control(`begin isolation level ${level} ${read_only ? "read only" : "read write"}`);
  }

  async commit(options: { readonly chain?: boolean } = {}): Promise<void> {
    await this.#control(options.chain ? "commit and chain" : "commit");
  }

  async rollback(options: { readonly chain?: boolean } = {}): Promise<void> {
    await this.#control(options.chain ? "rollback and chain" : "rollback");
  }
}

export class Client extends Queryable {
  readonly #client: pg.Client;

  constructor(options?: ClientOptions | string) {
    const client = new pg.Client(toConfig(options));
    super((config) => client.query(config));
    client.on("error", () => {});
    this.#client = client;
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  async end(): Promise<void> {
    await this.#client.end();
  }

  createTransaction(name: string, options: TransactionOptions = {}): Transaction {
    return new Transaction(name, options, (config) => this.#client.query(config));
  }
}

export class PoolClient extends Queryable {
  readonly #client: pg.PoolClient;

  constructor(client: pg.PoolClient) {
    super((config) => client.query(config));
    this.#client = client;
  }

  release(): void {
    this.#client.release();
  }

  createTransaction(name: string, options: TransactionOptions = {}): Transaction {
    return new Transaction(name, options, (config) => this.#client.query(config));
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** A pool that connects when it is used, also if `lazy` is false. */
export class Pool {
  readonly #pool: pg.Pool;
  readonly #size: number;
  readonly #clients = new WeakMap<pg.PoolClient, PoolClient>();

  constructor(options: ClientOptions | string | undefined, size: number, _lazy = false) {
    this.#size = size;
    this.#pool = new pg.Pool({ ...toConfig(options), max: size });
    // The next query of the client reports it.
    this.#pool.on("error", () => {});
  }

  get available(): number {
    return this.#pool.idleCount;
  }

  get size(): number {
    return this.#size;
  }

  async connect(): Promise<PoolClient> {
    const connection = await this.#pool.connect();
    const client = this.#clients.get(connection) ?? new PoolClient(connection);
    this.#clients.set(connection, client);
    return client;
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}
