import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { GraphQLError } from "postgraphile/graphql";
import { ApiError } from "../../engine/errors.ts";
import { RecentMap } from "../../engine/recent-map.ts";
import { Refusal } from "./documents.ts";
import type { Sent } from "./parse-request.ts";

/** The document that a request means. */
export type FindDocument = (sent: Sent) => string | Promise<string>;

export type PersistedOptions = {
  /** Holds `<id>.graphql` for each operation; null: there are none. */
  readonly folder: string | null;
  /** Whether nothing else is run. */
  readonly only: boolean;
};

const MOST_REMEMBERED = 2_000;
/** A hash, as tools make them; nothing that leads out of the folder. */
const ID = /^[\w-]{1,128}$/;

/** Finds operations that were registered, by the names that Apollo, Relay and others give them in requests. */
export async function makeFindDocument({ folder, only }: PersistedOptions): Promise<FindDocument> {
  if (folder === null) return (sent) => sent.query ?? refuseWithout(sent);
  const is = await stat(folder).catch(() => null);
  if (!is?.isDirectory()) throw new Error(`GRAPHQL_PERSISTED_OPERATIONS names no folder: ${folder}`);

  const known = new RecentMap<string, string>(MOST_REMEMBERED);
  const read = async (id: string): Promise<string> => {
    const text = ID.test(id) ? await readFile(join(folder, `${id}.graphql`), "utf8").catch(orMissing) : null;
    if (text === null) throw refusal("PersistedQueryNotFound", "PERSISTED_QUERY_NOT_FOUND");
    known.set(id, text);
    return text;
  };

  return (sent) => {
    if (sent.query !== null && !only) return sent.query;
    const id = idOf(sent);
    if (id !== null) return known.get(id) ?? read(id);
    if (sent.query === null) return refuseWithout(sent);
    throw refusal("Only registered operations are run here: send the id of one.", "PERMISSION_DENIED");
  };
}

function idOf({ documentId, extensions }: Sent): string | null {
  const { sha256Hash } = (extensions.persistedQuery ?? {}) as Record<string, unknown>;
  return typeof sha256Hash === "string" ? sha256Hash : documentId;
}

/** Apollo's clients know these two messages and send the document then. */
function refuseWithout(sent: Sent): never {
  if (idOf(sent) !== null) throw refusal("PersistedQueryNotSupported", "PERSISTED_QUERY_NOT_SUPPORTED");
  throw new ApiError(400, "VALIDATION_ERROR", "Send the operation in query.");
}

function refusal(message: string, code: string): Refusal {
  return new Refusal([new GraphQLError(message, { extensions: { code } })]);
}

function orMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT") return null;
  throw error;
}
