import { userIdOf } from "#accounts";
import { type ApiKey, parseExpiryDate } from "#accounts/api-keys";
import { isAdministrator, type TokenKeys, toPublicKeySet } from "#accounts/identity";
import { bypassesPolicies, type Catalog } from "#catalog";
import type { Config } from "#config";
import {
  clientInfoOf,
  dispatchMethod,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayRoutes,
  HttpError,
  jsonResponse,
  notFound,
  withoutCaching,
} from "#http";
import { type AuthDependencies, authenticatePerson, requireSecondFactor } from "#rest-gateway/authenticate";
import { commandLine } from "#runtime";
import { type BodyField, OPTIONAL_TEXT, OPTIONAL_WHOLE_NUMBER, readFields, TEXT } from "./request/read-body.ts";

const CACHE_FIVE_MINUTES = { "Cache-Control": "public, max-age=300" };

export const API_KEYS_PATH = "/auth/keys";

const isTimestamp = (value: unknown): value is string => typeof value === "string" && parseExpiryDate(value) !== null;
const OPTIONAL_TIMESTAMP: BodyField<string | null> = {
  isRequired: false,
  accepts: isTimestamp,
  message: "Send a timestamp such as 2027-12-31T00:00:00Z.",
};
const NEW_KEY_FIELDS = {
  role: TEXT,
  name: OPTIONAL_TEXT,
  owner: OPTIONAL_WHOLE_NUMBER,
  expires: OPTIONAL_TIMESTAMP,
};

type ApiKeyDependencies = AuthDependencies & {
  readonly catalog: () => Catalog;
  readonly config: Pick<Config, "studioSql">;
};

/** Handles /auth/keys and /auth/keys/{id}: API keys, for signed-in administrators. */
export function apiKeyRoutes(services: ApiKeyDependencies): GatewayHandler {
  const { accounts, catalog, config } = services;
  const { apiKeys } = accounts;

  /** Returns the acting user; null for a token without a user, such as that of an open Studio. */
  const authenticateAdmin = async (request: GatewayRequest): Promise<string | null> => {
    const caller = await authenticatePerson(request, services);
    await requireSecondFactor(caller, services);
    const isUnnamed = isAdministrator(caller) && caller.claims.sub === undefined;
    const userId = isUnnamed ? null : userIdOf(caller.claims);
    if (isAdministrator(caller)) return userId;
    throw new HttpError(403, "PERMISSION_DENIED", "Only an administrator may do this.");
  };

  const { collection, member } = withoutCaching({
    collection: {
      GET: async (request) => {
        await authenticateAdmin(request);
        return jsonResponse(200, { keys: (await apiKeys.list()).map(toKeyJson) });
      },
      POST: async (request) => {
        const actor = await authenticateAdmin(request);
        const { role, name, owner, expires } = await readFields(request, NEW_KEY_FIELDS);
        if (!config.studioSql && bypassesPolicies(catalog(), role)) throw bypassingKeyRefused(role);
        const { id, key } = await apiKeys.create(
          {
            role,
            name: name ?? "",
            ownerId: owner === null ? null : String(owner),
            expiresAt: expires === null ? null : parseExpiryDate(expires),
          },
          { ...clientInfoOf(request), actor },
        );
        const message = "Store the key now: it is not shown again.";
        return jsonResponse(201, { id: Number(id), key, message }, { Location: `${API_KEYS_PATH}/${id}` });
      },
    },
    member: {
      DELETE: async (request) => {
        const actor = await authenticateAdmin(request);
        await apiKeys.revoke(readKeyId(request), { clientInfo: { ...clientInfoOf(request), actor } });
        return { status: 204, headers: {}, body: null };
      },
    },
  });

  const [collectionMethods, memberMethods] = [collection!, member!].map((methods) => new Map(Object.entries(methods)));
  return (request) => dispatchMethod(request.path === API_KEYS_PATH ? collectionMethods! : memberMethods!, request);
}

/** The error for a key that would have the same power as SQL as the owner. */
function bypassingKeyRefused(role: string): HttpError {
  return new HttpError(403, "PERMISSION_DENIED", `Policies do not bind the role "${role}".`, {
    hint: `Set STUDIO_SQL=true to let administrators make such keys, or use: ${commandLine("keys", `create --role ${role}`)}`,
  });
}

function readKeyId({ path }: GatewayRequest): string {
  const id = path.slice(API_KEYS_PATH.length + 1);
  if (id.includes("/")) throw notFound();
  if (/^[1-9]\d{0,17}$/.test(id)) return id;
  throw new HttpError(400, "INVALID_ID", "The id of a key must be a whole number.");
}

/** Returns a key with the beginning of its text only, because the key itself is not stored. */
function toKeyJson({ id, ownerId, prefix, expiresAt, isLive: _isLive, ...key }: ApiKey) {
  return {
    id: Number(id),
    begins: prefix,
    owner: ownerId === null ? null : Number(ownerId),
    expires: expiresAt,
    ...key,
  };
}

/** Publishes the keys that verify our tokens. */
export function keySetRoutes(keys: TokenKeys): GatewayRoutes {
  const published = toPublicKeySet(keys);
  return { "/.well-known/jwks.json": { GET: () => jsonResponse(200, { keys: published }, CACHE_FIVE_MINUTES) } };
}
