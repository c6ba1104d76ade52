import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter, OPERATOR } from "./identity/client-info.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";

type NewApiKey = {
  /** The role of the key. The caller checks first that this role may be granted. */
  readonly role: string;
  readonly ownerId?: string | null;
  readonly name?: string;
  readonly expiresAt?: Date | null;
};

export type ApiKey = {
  readonly id: string;
  readonly prefix: string;
  readonly role: string;
  readonly ownerId: string | null;
  readonly name: string;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** True if the key is neither revoked nor expired. */
  readonly isLive: boolean;
};

export type ApiKeys = {
  /** Returns the key, which is not stored. Checks again in the database that the actor is an administrator. */
  create(key: NewApiKey, clientInfo?: ClientInfo): Promise<{ readonly id: string; readonly key: string }>;
  /** Creates a key of a user who has confirmed the password in this transaction, in the user's role. */
  createOwn(
    client: pg.ClientBase,
    key: { readonly ownerId: string; readonly name: string; readonly expiresAt: Date | null },
    clientInfo: ClientInfo,
  ): Promise<{ readonly id: string; readonly key: string }>;
  /** Lists the keys of one owner, or all keys. */
  list(options?: { readonly ownerId?: string }): Promise<ApiKey[]>;
  /** Revokes a key; with `ownerId`, only if the key belongs to that owner. */
  revoke(id: string, options?: { readonly ownerId?: string; readonly clientInfo?: ClientInfo }): Promise<void>;
};

/** A recognizable prefix, for secret scanners. */
const KEY_PREFIX = "key_";
const KEY_PREFIX_LENGTH = 12;

const LIST_API_KEYS = `
  select id, prefix, role, owner_id as "ownerId", name, created_at as "createdAt", expires_at as "expiresAt",
    revoked_at as "revokedAt", last_used_at as "lastUsedAt",
    revoked_at is null and (expires_at is null or expires_at > pg_catalog.now()) as "isLive"
  from auth.list_api_keys($1)`;

/** Manages API keys. `accounts/identity` authenticates requests with them. */
export function makeApiKeys(asOwner: AsOwner): ApiKeys {
  return {
    async create({ role, ownerId = null, name = "", expiresAt = null }, clientInfo = OPERATOR) {
      const key = KEY_PREFIX + generateSecret();
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ id: string }>(`select auth.create_api_key($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as id`, [
          clientInfoParameter(clientInfo),
          digestOf(key),
          key.slice(0, KEY_PREFIX_LENGTH),
          role,
          ownerId,
          name,
          expiresAt,
        ]),
      );
      return { id: rows[0]!.id, key };
    },

    async createOwn(client, { ownerId, name, expiresAt }, clientInfo) {
      const key = KEY_PREFIX + generateSecret();
      const { rows } = await client.query<{ id: string }>(
        `select auth.create_own_api_key($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL}) as id`,
        [clientInfoParameter(clientInfo), digestOf(key), key.slice(0, KEY_PREFIX_LENGTH), ownerId, name, expiresAt],
      );
      return { id: rows[0]!.id, key };
    },

    async list({ ownerId } = {}) {
      const { rows } = await asOwner((client) => client.query<ApiKey>(LIST_API_KEYS, [ownerId ?? null]));
      return rows;
    },

    async revoke(id, { ownerId, clientInfo = OPERATOR } = {}) {
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ revoked: boolean }>(`select auth.revoke_api_key($2, $3, ${CLIENT_INFO_SQL}) as revoked`, [
          clientInfoParameter(clientInfo),
          id,
          ownerId ?? null,
        ]),
      );
      if (!rows[0]!.revoked) {
        throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "There is no such key, or it was revoked before.");
      }
    },
  };
}

/** Parses `2027-12-31`, or a date with a time of day; null if it is no valid date. */
export function parseExpiryDate(text: string): Date | null {
  if (!/^\d{4}-\d\d-\d\d([T ]|$)/.test(text)) return null;
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) || !isCalendarDay(text.slice(0, 10)) ? null : moment;
}

/** JavaScript parses the 30th of February as the 2nd of March. */
function isCalendarDay(day: string): boolean {
  return new Date(day).toISOString().startsWith(day);
}
