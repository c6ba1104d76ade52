import type { Signers } from "#accounts";
import type { Authenticator, Caller, TokenKeys } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import type { FileStore } from "#files";
import type { BodyLimit, GatewayResponse, MatchedRequest, ResponseBody } from "#http";
import type { Database } from "#postgres/database";
import { findUnstorableInJson, isJsonObject, type JsonObject } from "#runtime/json";
import type { makeStatementContexts } from "../request/run.ts";
import { refuseVersions } from "./missing-features.ts";
import { type ObjectAddress, StorageRows } from "./object-rows.ts";
import { storageError } from "./storage-error.ts";

export const STORAGE_PREFIX = "/storage/v1";

/** The dependencies of the routes. */
export type StorageServices = {
  readonly store: FileStore;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly authenticator: Pick<Authenticator, "anonymous">;
  readonly authenticate: (request: MatchedRequest) => Caller | Promise<Caller>;
  readonly signers: Signers;
  readonly contextOf: ReturnType<typeof makeStatementContexts>;
  readonly keys: TokenKeys;
  readonly config: Config;
};

/** A request with its caller, and the statements of that caller. */
export type StorageRequest = MatchedRequest & {
  readonly caller: Caller;
  readonly rows: StorageRows;
  /** Returns the statements of another caller, such as the signer of the address. */
  readonly rowsOf: (caller: Caller) => StorageRows;
};

export type StorageHandler = (request: StorageRequest) => Promise<GatewayResponse<ResponseBody>>;

/** The routes by method and pattern of the path. */
export type StorageRoutes = Readonly<Record<string, StorageHandler>>;

/** Opens a request; policies read `operation` by `storage.operation()`. */
export function openRequest(
  request: MatchedRequest,
  caller: Caller,
  operation: string,
  { database, contextOf, catalog }: Pick<StorageServices, "database" | "contextOf" | "catalog">,
): StorageRequest {
  const rowsOf = (who: Caller) => {
    const context = contextOf({
      ...{ request, caller: who, catalog: catalog() },
      ...{ schema: "storage", timezone: null, plan: null },
    });
    return new StorageRows(database, { ...context, settings: [...context.settings, ["storage.operation", operation]] });
  };
  return { ...request, caller, rows: rowsOf(caller), rowsOf };
}

/** Returns the request as sent by the signer of the address. */
export function asSigner(request: StorageRequest, signer: Caller): StorageRequest {
  return { ...request, caller: signer, rows: request.rowsOf(signer) };
}

/** Returns the address from `{bucket}` and `{path*}` of the route. */
export function addressOf({ parameters, query }: MatchedRequest): ObjectAddress {
  refuseVersions({ versionId: query.get("versionId") });
  return { bucket: parameters.bucket!, name: checkName(parameters.path ?? "") };
}

/** Checks a name. The database has this rule too; here it keeps names that no row can have from queries. */
export function checkName(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  const isRefused = name === "" || Buffer.byteLength(name) > 1024 || /[\0-\x1f\x7f]|(^|\/)\.{1,2}(\/|$)|^\//.test(name);
  if (isRefused || !name.isWellFormed()) throw storageError("InvalidKey", `Invalid key: ${name}`);
  return name;
}

/** Returns the subject of the token, which becomes the owner of uploaded objects. */
export function ownerOf({ claims }: Caller): string | null {
  return typeof claims.sub === "string" && claims.sub !== "" ? claims.sub : null;
}

const BODY_LIMIT: BodyLimit = { bytes: 1024 * 1024, isAnonymous: true };

export async function readJsonBody(request: MatchedRequest): Promise<JsonObject> {
  const bytes = await request.readBody(BODY_LIMIT);
  if (bytes.length === 0) return {};
  const text = bytes.toString("utf8");
  const body = parseJson(text);
  if (!isJsonObject(body)) throw storageError("InvalidRequest", "body must be object");
  if (findUnstorableInJson(text) !== null)
    throw storageError("InvalidRequest", "body must not contain NUL or lone surrogates");
  refuseVersions(body);
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw storageError("InvalidRequest", "Body is not valid JSON");
  }
}

export function requiredText(body: JsonObject, name: string): string {
  const value = body[name];
  if (value === undefined || value === null)
    throw storageError("InvalidRequest", `body must have required property '${name}'`);
  if (typeof value !== "string") throw storageError("InvalidRequest", `body/${name} must be string`);
  return value;
}

export function optionalText(body: JsonObject, name: string): string | null {
  return (body[name] ?? null) === null ? null : requiredText(body, name);
}

export function requiredTexts(body: JsonObject, name: string, { max }: { readonly max: number }): readonly string[] {
  const value = body[name];
  if (!Array.isArray(value)) throw storageError("InvalidRequest", `body/${name} must be array`);
  if (value.length === 0) throw storageError("InvalidRequest", `body/${name} must NOT have fewer than 1 items`);
  if (value.length > max) throw storageError("InvalidRequest", `body/${name} must NOT have more than ${max} items`);
  if (value.some((item) => typeof item !== "string"))
    throw storageError("InvalidRequest", `body/${name}/0 must be string`);
  return value as string[];
}

/** Reads a whole number within bounds; the default if it is missing. */
export function wholeNumber(body: JsonObject, name: string, { least, most, usual }: Bounds): number {
  const value = body[name] ?? usual;
  if (typeof value !== "number" || !Number.isInteger(value))
    throw storageError("InvalidRequest", `body/${name} must be integer`);
  if (value < least) throw storageError("InvalidRequest", `body/${name} must be >= ${least}`);
  return Math.min(value, most);
}

type Bounds = { readonly least: number; readonly most: number; readonly usual?: number };
