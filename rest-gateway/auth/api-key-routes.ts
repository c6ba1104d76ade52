import type { ApiKey } from "../../engine/auth/api-keys.ts";
import { isAdministrator } from "../../engine/caller/administrator.ts";
import { ApiError } from "../../engine/errors.ts";
import { readMoment } from "../../engine/moment.ts";
import { notFound } from "../../engine/wrong-address.ts";
import { dispatch } from "../gateway.ts";
import { type GatewayRequest, type Handler, json } from "../http.ts";
import type { AuthDependencies } from "./auth-dependencies.ts";
import { type BodyField, OPTIONAL_TEXT, OPTIONAL_WHOLE_NUMBER, readFields, TEXT } from "./body-fields.ts";
import { clientInfoOf } from "./client-info.ts";
import { identifyUser } from "./credentials.ts";
import { withoutCaching } from "./without-caching.ts";

export const API_KEYS_PATH = "/auth/keys";

const isTimestamp = (value: unknown): value is string => typeof value === "string" && readMoment(value) !== null;
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

/** Handles /auth/keys and /auth/keys/{id}: API keys, for signed-in administrators. */
export function apiKeyRoutes(services: AuthDependencies): Handler {
  const { apiKeys } = services.accounts;

  const identifyAdmin = async (request: GatewayRequest): Promise<string> => {
    const { userId, caller } = await identifyUser(request, services);
    if (isAdministrator(caller)) return userId;
    throw new ApiError(403, "PERMISSION_DENIED", "Only an administrator may do this.");
  };

  const { collection, member } = withoutCaching({
    collection: {
      GET: async (request) => {
        await identifyAdmin(request);
        return json(200, { keys: (await apiKeys.list()).map(toKeyJson) });
      },
      POST: async (request) => {
        const actor = await identifyAdmin(request);
        const { role, name, owner, expires } = await readFields(request, NEW_KEY_FIELDS);
        const { id, key } = await apiKeys.create(
          {
            role,
            name: name ?? "",
            ownerId: owner === null ? null : String(owner),
            expiresAt: expires === null ? null : readMoment(expires),
          },
          { ...clientInfoOf(request), actor },
        );
        const message = "Store the key now: it is not shown again.";
        return json(201, { id: Number(id), key, message }, { Location: `${API_KEYS_PATH}/${id}` });
      },
    },
    member: {
      DELETE: async (request) => {
        const actor = await identifyAdmin(request);
        await apiKeys.revoke(readKeyId(request), { clientInfo: { ...clientInfoOf(request), actor } });
        return { status: 204, headers: {}, body: null };
      },
    },
  });

  const [ofAll, ofOne] = [collection!, member!].map((methods) => new Map(Object.entries(methods)));
  return (request) => dispatch(request.path === API_KEYS_PATH ? ofAll! : ofOne!, request);
}

function readKeyId({ path }: GatewayRequest): string {
  const id = path.slice(API_KEYS_PATH.length + 1);
  if (id.includes("/")) throw notFound();
  if (/^[1-9]\d{0,17}$/.test(id)) return id;
  throw new ApiError(400, "INVALID_ID", "The id of a key must be a whole number.");
}

/** Returns only the beginning of the key, because the key itself is not stored. */
function toKeyJson({ id, ownerId, prefix, expiresAt, ...key }: ApiKey) {
  return {
    id: Number(id),
    begins: prefix,
    owner: ownerId === null ? null : Number(ownerId),
    expires: expiresAt,
    ...key,
  };
}
