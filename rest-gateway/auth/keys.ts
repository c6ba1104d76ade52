import type { ApiKey } from "../../engine/auth/api-keys.ts";
import { isAdministrator } from "../../engine/caller/administrator.ts";
import { ApiError } from "../../engine/errors.ts";
import { readMoment } from "../../engine/moment.ts";
import { notFound } from "../../engine/wrong-address.ts";
import { dispatch } from "../gateway.ts";
import { type GatewayRequest, type Handler, json } from "../http.ts";
import { confidential } from "./confidential.ts";
import { identifyUser } from "./credentials.ts";
import { type Field, OPTIONAL_TEXT, OPTIONAL_WHOLE_NUMBER, readFields, TEXT } from "./fields.ts";
import { senderOf } from "./sender.ts";
import type { AuthServices } from "./services.ts";

export const KEYS = "/auth/keys";

const isMoment = (value: unknown): value is string => typeof value === "string" && readMoment(value) !== null;
const OPTIONAL_MOMENT: Field<string | null> = {
  isRequired: false,
  accepts: isMoment,
  wanted: "Send a moment such as 2027-12-31T00:00:00Z.",
};
const NEW_KEY = {
  role: TEXT,
  name: OPTIONAL_TEXT,
  owner: OPTIONAL_WHOLE_NUMBER,
  expires: OPTIONAL_MOMENT,
};

/** The keys of programs, for administrators who are signed in themselves: everything below /auth/keys. */
export function keyFolder(services: AuthServices): Handler {
  const { apiKeys } = services.accounts;

  const identifyAdmin = async (request: GatewayRequest): Promise<string> => {
    const { userId, caller } = await identifyUser(request, services);
    if (isAdministrator(caller)) return userId;
    throw new ApiError(403, "PERMISSION_DENIED", "Only an administrator may do this.");
  };

  const { collection, member } = confidential({
    collection: {
      GET: async (request) => {
        await identifyAdmin(request);
        return json(200, { keys: (await apiKeys.list()).map(toEntry) });
      },
      POST: async (request) => {
        const actor = await identifyAdmin(request);
        const { role, name, owner, expires } = await readFields(request, NEW_KEY);
        const { id, key } = await apiKeys.create(
          {
            role,
            name: name ?? "",
            ownerId: owner === null ? null : String(owner),
            expiresAt: expires === null ? null : readMoment(expires),
          },
          { ...senderOf(request), actor },
        );
        const message = "Keep the key: it is shown this once.";
        return json(201, { id: Number(id), key, message }, { Location: `${KEYS}/${id}` });
      },
    },
    member: {
      DELETE: async (request) => {
        const actor = await identifyAdmin(request);
        await apiKeys.revoke(idIn(request), { sender: { ...senderOf(request), actor } });
        return { status: 204, headers: {}, body: null };
      },
    },
  });

  const [ofAll, ofOne] = [collection!, member!].map((methods) => new Map(Object.entries(methods)));
  return (request) => dispatch(request.path === KEYS ? ofAll! : ofOne!, request);
}

function idIn({ path }: GatewayRequest): string {
  const id = path.slice(KEYS.length + 1);
  if (id.includes("/")) throw notFound();
  if (/^[1-9]\d{0,17}$/.test(id)) return id;
  throw new ApiError(400, "INVALID_ID", "The id of a key is a whole number.");
}

/** The key itself is nowhere: what it begins with tells people which one it is. */
function toEntry({ id, ownerId, prefix, expiresAt, ...key }: ApiKey) {
  return {
    id: Number(id),
    begins: prefix,
    owner: ownerId === null ? null : Number(ownerId),
    expires: expiresAt,
    ...key,
  };
}
