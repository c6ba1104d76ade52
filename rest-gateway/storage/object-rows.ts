import { asLogin, BECOME_LOGIN, type Database, type RunStatement } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import { isJsonObject, parseJsonExactly } from "#runtime/json";
import { explainStorageError, storageError } from "./storage-error.ts";

/** The row of an object, as SQL prints it. */
export type ObjectRow = {
  readonly id: string;
  readonly name: string;
  readonly bucket_id: string;
  readonly owner: string | null;
  readonly owner_id: string | null;
  readonly version: string | null;
  readonly metadata: ObjectMetadata | null;
  readonly user_metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_accessed_at: string;
  /** The hash of the content; null for a row that was not written by an upload. */
  readonly content: string | null;
};

/** The metadata of a content that the service knows. Members of rows that others wrote may be missing. */
export type ObjectMetadata = Readonly<{
  eTag?: string;
  size?: number;
  mimetype?: string;
  cacheControl?: string | undefined;
  lastModified?: string;
  contentLength?: number;
  httpStatusCode?: number;
  /** The headers that a client of S3 has sent; with `undefined`, a copy leaves them out. */
  contentDisposition?: string | undefined;
  contentEncoding?: string | undefined;
  contentLanguage?: string | undefined;
}>;

/** One content of one object: the id stays when it is replaced, the version does not. */
export type ObjectVersion = Pick<ObjectRow, "id" | "version">;

export type ObjectAddress = { readonly bucket: string; readonly name: string };

export type NewObject = ObjectAddress & {
  readonly owner: string | null;
  readonly metadata: ObjectMetadata;
  readonly userMetadata: Readonly<Record<string, unknown>> | null;
  readonly version: string;
  readonly replaces: boolean;
};

type BucketTerms = {
  readonly isPublic: boolean;
  readonly maxBytes: number | null;
  readonly types: readonly string[] | null;
};

/** Statements of one caller on buckets and objects. Policies of the tables decide; refusals are errors of the storage interface. */
export class StorageRows {
  readonly #database: Database;
  readonly #context: StatementContext;
  /** The context of the same caller, without replicas. */
  readonly #ofPrimary: StatementContext;

  constructor(database: Database, context: StatementContext) {
    this.#database = database;
    this.#context = context;
    const { readYourWrites: _replicas, ...ofPrimary } = context;
    this.#ofPrimary = ofPrimary;
  }

  /** Reads the rows of a function, as JSON. */
  read<T>(text: string, values: readonly (string | null)[]): Promise<T[]> {
    return this.#read(this.#context, { text, values });
  }

  /** Reads the rows of a function that only the service calls, as JSON. */
  readAsService<T>(text: string, values: readonly (string | null)[]): Promise<T[]> {
    return this.#read(this.#ofPrimary, { text, values }, BECOME_LOGIN);
  }

  async #read<T>(context: StatementContext, statement: Statement, before?: Statement): Promise<T[]> {
    try {
      const { rows } = await this.#database.run(context, statement, { readOnly: true, before });
      return rows.map(([cell]) => parseRow<T>(cell));
    } catch (error) {
      throw explainStorageError(error);
    }
  }

  /** Reads an object. A replica may lack a recent upload of another caller, or of this one through another gateway: then the primary is read. */
  async #readObject(statement: Statement): Promise<ObjectRow> {
    let [row] = await this.#read<ObjectRow>(this.#context, statement);
    if (!row && this.#context.readYourWrites) [row] = await this.#read<ObjectRow>(this.#ofPrimary, statement);
    if (!row) throw storageError("NoSuchKey");
    return withUsableMetadata(row);
  }

  async write<T>(text: string, values: readonly (string | null)[]): Promise<T[]> {
    return this.transact(async (run) => {
      const { rows } = await run({ text, values });
      return rows.map(([cell]) => parseRow<T>(cell));
    });
  }

  async transact<T>(work: (run: RunStatement) => Promise<T>): Promise<T> {
    try {
      return await this.#database.transaction(this.#context, (run) => work(run));
    } catch (error) {
      throw explainStorageError(error);
    }
  }

  /** Finds the object, if the caller may read it. */
  find({ bucket, name }: ObjectAddress): Promise<ObjectRow> {
    return this.#readObject({ text: FIND_OBJECTS, values: [bucket, JSON.stringify([name])] });
  }

  async findAll(bucket: string, names: readonly string[]): Promise<ObjectRow[]> {
    const rows = await this.read<ObjectRow>(FIND_OBJECTS, [bucket, JSON.stringify(names)]);
    return rows.map(withUsableMetadata);
  }

  /**
   * Finds the object on the primary, if the caller may read it: for signed addresses, which name the version of the object. Such an
   * address
   * does not tell the position of the write, so a replica may not have it yet.
   */
  async findCurrent({ bucket, name }: ObjectAddress): Promise<ObjectRow> {
    const [row] = await this.findAllCurrent(bucket, [name]);
    if (!row) throw storageError("NoSuchKey");
    return row;
  }

  async findAllCurrent(bucket: string, names: readonly string[]): Promise<ObjectRow[]> {
    const statement = { text: FIND_OBJECTS, values: [bucket, JSON.stringify(names)] };
    return (await this.#read<ObjectRow>(this.#ofPrimary, statement)).map(withUsableMetadata);
  }

  /** Finds an object of a public bucket for any caller, on the primary, because caches would keep an older version from a replica. */
  async findPublic({ bucket, name }: ObjectAddress): Promise<ObjectRow> {
    const [row] = await this.readAsService<ObjectRow>(PUBLIC_OBJECT, [bucket, name]);
    if (!row) throw storageError("NoSuchKey");
    return withUsableMetadata(row);
  }

  /** Returns the version of the object, for a caller who may replace it; null if the name is free. */
  async versionOf({ bucket, name }: ObjectAddress): Promise<ObjectVersion | null> {
    const [found] = await this.readAsService<ObjectVersion>(OBJECT_VERSION, [bucket, name]);
    return found ?? null;
  }

  /** Returns the limits of the bucket, which are public. Throws unless it exists. */
  async termsOf(bucket: string): Promise<BucketTerms> {
    const [terms] = await this.readAsService<BucketTerms>(BUCKET_TERMS, [bucket]);
    if (!terms) throw storageError("NoSuchBucket");
    // An empty list is no restriction, as in Supabase's service.
    return terms.types?.length === 0 ? { ...terms, types: null } : terms;
  }

  /** Calls a function that only the service calls. */
  async writeAsService(text: string, values: readonly (string | null)[]): Promise<void> {
    await this.transact((run) => asLogin(run)({ text, values }));
  }

  /** Throws unless the caller may add or replace the object. Nothing is changed. */
  checkUpload(object: NewObject): Promise<void> {
    return this.#tryStatement(putStatement(object));
  }

  /** Throws unless the caller may add the object, if the name is free, and replace it. */
  checkReplacement(object: NewObject): Promise<void> {
    return this.#tryStatement(putStatement(object, 2));
  }

  async #tryStatement(statement: Statement): Promise<void> {
    try {
      await this.#database.run(this.#context, statement, { rollback: true });
    } catch (error) {
      throw explainStorageError(error);
    }
  }
}

/** Adds or replaces the row, as the caller. */
export async function putObject(run: RunStatement, object: NewObject, expected: ExpectedObject = {}): Promise<void> {
  if (expected.version && !(await holdObject(run, object, expected.version))) throw objectHasChanged();
  await run(putStatement(object));
  if (!expected.content) return;
  // The row is locked, and has its old content until it names the new one.
  const { rows } = await run({ text: FIND_OBJECTS, values: [object.bucket, JSON.stringify([object.name])] });
  const found = rows[0] && parseRow<ObjectRow>(rows[0][0]);
  if (found?.content !== expected.content) throw storageError("PreconditionFailed");
}

/** The expected state of the object that is replaced. */
type ExpectedObject = { readonly content?: string | null; readonly version?: ObjectVersion | null };

/** Locks the object against changes until the transaction ends. Returns false if it is another version. */
async function holdObject(
  run: RunStatement,
  { bucket, name }: ObjectAddress,
  { id, version }: ObjectVersion,
): Promise<boolean> {
  const text = "select content_service.hold_object($1, $2, $3, $4)::pg_catalog.text";
  const { rows } = await asLogin(run)({ text, values: [bucket, name, id, version] });
  return rows[0]?.[0] === "true";
}

export function isSameObject(found: ObjectVersion | null, expected: ObjectVersion | null): boolean {
  return found?.id === expected?.id && (found?.version ?? null) === (expected?.version ?? null);
}

export function objectHasChanged() {
  return storageError("InvalidSignature", "The object has changed since the address was signed; sign a new one");
}

/** Records the content, and waits while it is being deleted. The caller must publish it then, before the object names it. */
export async function keepFile(run: RunStatement, hash: string, bytes: number): Promise<void> {
  await asLogin(run)({ text: "select content_service.keep_file($1, $2)", values: [hash, String(bytes)] });
}

/** Sets the content of the object. Returns its id. */
export async function nameContent(run: RunStatement, { bucket, name }: ObjectAddress, hash: string): Promise<string> {
  const text = "select id::pg_catalog.text from content_service.name_content($1, $2, $3) as id";
  const { rows } = await asLogin(run)({ text, values: [bucket, name, hash] });
  const id = rows[0]?.[0];
  if (!id) throw storageError("NoSuchKey");
  return id;
}

/** Builds the statement. With `times` 2 it puts the object twice: the second time, the object exists and is replaced. */
function putStatement(
  { bucket, name, owner, metadata, userMetadata, version, replaces }: NewObject,
  times: 1 | 2 = 1,
): Statement {
  const put = "storage.put_object($1, $2, $3, $4::pg_catalog.jsonb, $5::pg_catalog.jsonb, $6, $7)";
  return {
    text: `select ${Array(times).fill(put).join(", ")}`,
    values: [
      bucket,
      name,
      owner,
      JSON.stringify(metadata),
      userMetadata && JSON.stringify(userMetadata),
      version,
      String(replaces),
    ],
  };
}

export type UnfinishedUploadRow = {
  readonly id: string;
  readonly bucket_id: string;
  readonly name: string;
  readonly about: unknown;
  readonly started_at: string;
};

export type UploadPart = {
  readonly number: number;
  readonly content: string;
  readonly bytes: number;
  readonly stored_at: string;
};

const NAMES = "array(select pg_catalog.json_array_elements_text($2::pg_catalog.json))";
const FIND_OBJECTS = `select pg_catalog.to_json(object)::pg_catalog.text from storage.find_objects($1, ${NAMES}) as object`;
const PUBLIC_OBJECT =
  "select pg_catalog.to_json(object)::pg_catalog.text from content_service.public_object($1, $2) as object";
const OBJECT_VERSION =
  "select pg_catalog.to_json(object)::pg_catalog.text from content_service.object_version($1, $2) as object";
const BUCKET_TERMS = `select pg_catalog.json_build_object('isPublic', is_public, 'maxBytes', file_size_limit, 'types', allowed_mime_types)::pg_catalog.text
  from content_service.bucket_terms($1)`;
export const REMOVE_OBJECTS = `select pg_catalog.to_json(object)::pg_catalog.text from storage.remove_objects($1, ${NAMES}) as object`;

export function parseRow<T>(cell: string | null | undefined): T {
  return parseJsonExactly(cell ?? "null") as T;
}

const HEADER_MEMBERS: ReadonlySet<string> = new Set([
  ...["mimetype", "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage"],
]);

/** Removes metadata that cannot be headers of a response, because a writer of rows can write any metadata. */
function withUsableMetadata(row: ObjectRow): ObjectRow {
  if (!isJsonObject(row.metadata)) return { ...row, metadata: null };
  const isUsable = ([name, value]: [string, unknown]) => !HEADER_MEMBERS.has(name) || isHeaderText(value);
  const metadata = Object.fromEntries(Object.entries(row.metadata).filter(isUsable));
  return { ...row, metadata };
}

export function isHeaderText(value: unknown): value is string {
  return typeof value === "string" && /^[\x20-\x7e]{1,1000}$/.test(value);
}
