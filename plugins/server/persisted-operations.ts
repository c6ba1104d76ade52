import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { GraphQLError } from "postgraphile/graphql";
import { RecentMap } from "../../engine/cache/recent-map.ts";
import { ApiError } from "../../engine/errors.ts";
import { GraphqlRefusal } from "./documents.ts";
import type { GraphqlRequest } from "./parse-request.ts";

/** The document that a request means. */
export type FindDocument = (request: GraphqlRequest) => string | Promise<string>;

export type PersistedOperationsOptions = {
  /** Holds `<id>.graphql` for each operation; null: there are none. */
  readonly folder: string | null;
  /** Whether nothing else is run. */
  readonly only: boolean;
};

const MAX_CACHED_OPERATIONS = 2_000;
/** A hash, as tools make them; nothing that leads out of the folder. */
const OPERATION_ID = /^[\w-]{1,128}$/;

/** Finds operations that were registered, by the names that Apollo, Relay and others give them in requests. */
export async function makeFindDocument({ folder, only }: PersistedOperationsOptions): Promise<FindDocument> {
  if (folder === null) return (request) => request.query ?? refuseMissingDocument(request);
  const stats = await stat(folder).catch(() => null);
  if (!stats?.isDirectory()) throw new Error(`GRAPHQL_PERSISTED_OPERATIONS names no folder: ${folder}`);

  const cache = new RecentMap<string, string>(MAX_CACHED_OPERATIONS);
  const readOperation = async (id: string): Promise<string> => {
    const text = OPERATION_ID.test(id)
      ? await readFile(join(folder, `${id}.graphql`), "utf8").catch(nullIfMissing)
      : null;
    if (text === null) throw persistedRefusal("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND");
    cache.set(id, text);
    return text;
  };

  return (request) => {
    if (request.query !== null && !only) return request.query;
    const id = operationIdOf(request);
    if (id !== null) return cache.get(id) ?? readOperation(id);
    if (request.query === null) return refuseMissingDocument(request);
    throw persistedRefusal("Only registered operations are run here: send the id of one.", "PERMISSION_DENIED");
  };
}

function operationIdOf({ documentId, extensions }: GraphqlRequest): string | null {
  const { sha256Hash } = (extensions.persistedQuery ?? {}) as Record<string, unknown>;
  return typeof sha256Hash === "string" ? sha256Hash : documentId;
}

/** Apollo's clients know these two messages and send the document then. */
function refuseMissingDocument(request: GraphqlRequest): never {
  if (operationIdOf(request) !== null)
    throw persistedRefusal("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED");
  throw new ApiError(400, "VALIDATION_ERROR", "Send the operation in query.");
}

function persistedRefusal(message: string, code: string): GraphqlRefusal {
  return new GraphqlRefusal([new GraphQLError(message, { extensions: { code } })]);
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
