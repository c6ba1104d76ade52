import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { HttpError } from "#http";
import { RecentMap } from "#runtime";
import { refusalOf } from "../../documents/graphql-refusal.ts";
import type { GraphqlRequest } from "./parse.ts";

/** Finds the document of a request. */
export type FindDocument = (request: GraphqlRequest) => string | Promise<string>;

export type PersistedOperationsOptions = {
  /** Contains `<id>.graphql` for each operation; null when there are none. */
  readonly folder: string | null;
  /** True if only persisted operations are run. */
  readonly only: boolean;
};

const MAX_CACHED_OPERATIONS = 2_000;
/** An id such as a hash; it cannot contain a path. */
const OPERATION_ID = /^[\w-]{1,128}$/;

/** Finds persisted operations by the ids that Apollo, Relay and others send. */
export async function makeFindDocument({ folder, only }: PersistedOperationsOptions): Promise<FindDocument> {
  if (folder === null) return (request) => request.query ?? refuseMissingDocument(request);
  const stats = await stat(folder).catch(() => null);
  if (!stats?.isDirectory()) throw new Error(`GRAPHQL_PERSISTED_OPERATIONS is not a folder: ${folder}`);

  const cache = new RecentMap<string, string>(MAX_CACHED_OPERATIONS);
  const readOperation = async (id: string): Promise<string> => {
    const text = OPERATION_ID.test(id)
      ? await readFile(join(folder, `${id}.graphql`), "utf8").catch(nullIfMissing)
      : null;
    if (text === null) throw refusalOf("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND");
    cache.set(id, text);
    return text;
  };

  return (request) => {
    if (request.query !== null && !only) return request.query;
    const id = operationIdOf(request);
    if (id !== null) return cache.get(id) ?? readOperation(id);
    if (request.query === null) return refuseMissingDocument(request);
    throw refusalOf("Only persisted operations are allowed: send an operation id.", "PERMISSION_DENIED");
  };
}

function operationIdOf({ documentId, extensions }: GraphqlRequest): string | null {
  const { sha256Hash } = (extensions.persistedQuery ?? {}) as Record<string, unknown>;
  return typeof sha256Hash === "string" ? sha256Hash : documentId;
}

/** Throws one of the two messages on which Apollo's clients send the document. */
function refuseMissingDocument(request: GraphqlRequest): never {
  if (operationIdOf(request) !== null) throw refusalOf("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED");
  throw new HttpError(400, "VALIDATION_ERROR", "Send the operation in query.");
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
