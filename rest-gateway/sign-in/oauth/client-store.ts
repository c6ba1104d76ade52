import { digestOf, generateSecret } from "#accounts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "#accounts/identity";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { findUnstorable } from "#runtime/json";

type ClientRegistration = "manual" | "dynamic" | "document";
/** The grant types of this server (RFC 6749). */
export const GRANT_TYPES = ["authorization_code", "refresh_token"] as const;
/** The methods by which applications that have a secret send it. */
export const SECRET_METHODS = ["client_secret_basic", "client_secret_post"] as const;
export const AUTH_METHODS = ["none", ...SECRET_METHODS] as const;
export type ClientAuthMethod = (typeof AUTH_METHODS)[number];

/** The metadata that an application sends, validated. */
export type ClientMetadata = {
  readonly name: string;
  readonly uri: string | null;
  readonly logo_uri: string | null;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly string[];
  /** The scopes that it may request; null for all. */
  readonly scope: string | null;
  readonly auth_method: ClientAuthMethod;
};

/** The description of a client for users and administrators. */
export type DescribedClient = ClientMetadata & {
  readonly id: string;
  readonly registration: ClientRegistration;
};

export type OAuthClient = DescribedClient & {
  readonly secret_hash: Buffer | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  /** True if its document need not be read again. */
  readonly is_fresh: boolean;
};

/** A registered client. The secret is shown once; null for an application that cannot keep one. */
type RegisteredClient = { readonly client: OAuthClient; readonly secret: string | null };

type NewClient = ClientMetadata & {
  readonly registration: ClientRegistration;
  /** The id; if it is missing, the client gets a new one. */
  readonly id?: string;
  readonly fresh_until?: Date;
};

export type ClientStore = {
  findClient(id: string): Promise<OAuthClient | null>;
  listClients(
    page: number,
    perPage: number,
  ): Promise<{ readonly total: number; readonly clients: readonly OAuthClient[] }>;
  /** Registers the client with a new secret, if it can keep one, or replaces the client with this id. */
  register(client: NewClient, clientInfo: ClientInfo): Promise<RegisteredClient>;
  /** Changes the client, but keeps its secret. */
  change(client: OAuthClient, clientInfo: ClientInfo): Promise<OAuthClient>;
  removeClient(id: string, clientInfo: ClientInfo): Promise<boolean>;
};

const COLUMNS = `
  client.id, client.name, client.uri, client.logo_uri, client.redirect_uris, client.grant_types, client.scope, client.auth_method,
  client.registration, client.secret_hash, client.created_at, client.updated_at,
  coalesce(client.fresh_until operator(pg_catalog.>) pg_catalog.now(), true) as is_fresh`;
const FIND = `select ${COLUMNS} from auth.oauth_clients as client where client.id operator(pg_catalog.=) $1`;
const LIST = `
  select ${COLUMNS} from auth.oauth_clients as client where client.registration operator(pg_catalog.<>) 'document'
  order by client.created_at desc, client.id limit $1 offset $2`;
const COUNT = `
  select pg_catalog.count(*)::pg_catalog.int4 as total from auth.oauth_clients as client
  where client.registration operator(pg_catalog.<>) 'document'`;
const SAVE = `select ${COLUMNS} from auth.save_oauth_client($2, $3, ${CLIENT_INFO_SQL}) as client`;
const MAX_ID_LENGTH = 2_000;

export function makeClientStore(asOwner: AsOwner): ClientStore {
  const save = async (client: NewClient, secretHash: Buffer | null, clientInfo: ClientInfo): Promise<OAuthClient> => {
    const described = JSON.stringify({ ...client, secret_hash: undefined });
    const values = [clientInfoParameter(clientInfo), described, secretHash];
    const { rows } = await inOwnerTransaction(asOwner, (connection) => connection.query<OAuthClient>(SAVE, values));
    return rows[0]!;
  };
  return {
    async findClient(id) {
      if (id === "" || id.length > MAX_ID_LENGTH || findUnstorable(id) !== null) return null;
      return (await asOwner((client) => client.query<OAuthClient>(FIND, [id]))).rows[0] ?? null;
    },
    listClients: (page, perPage) =>
      asOwner(async (client) => {
        const { rows: counted } = await client.query<{ total: number }>(COUNT);
        const { rows: clients } = await client.query<OAuthClient>(LIST, [perPage, (page - 1) * perPage]);
        return { total: counted[0]!.total, clients };
      }),
    async register(client, clientInfo) {
      const secret = client.auth_method === "none" ? null : generateSecret();
      return { client: await save(client, secret === null ? null : digestOf(secret), clientInfo), secret };
    },
    change: (client, clientInfo) => save(client, client.secret_hash, clientInfo),
    async removeClient(id, clientInfo) {
      const text = `select auth.remove_oauth_client($2, ${CLIENT_INFO_SQL}) as done`;
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ done: boolean }>(text, [clientInfoParameter(clientInfo), id]),
      );
      return rows[0]!.done;
    },
  };
}
