import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError } from "../errors.ts";
import { digestOf, newSecret } from "./secret.ts";
import { OPERATOR, SENDER, type Sender, senderValue } from "./sender.ts";

export type NewApiKey = {
  /** Who may give away which role is to be asked before. */
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
};

export type ApiKeys = {
  /** The key itself is told this once. Refuses who was an administrator a moment ago. */
  create(key: NewApiKey, sender?: Sender): Promise<{ readonly id: string; readonly key: string }>;
  /** Of one owner, or all. */
  list(options?: { readonly ownerId?: string }): Promise<ApiKey[]>;
  /** With an owner only one of that owner's. */
  revoke(id: string, options?: { readonly ownerId?: string; readonly sender?: Sender }): Promise<void>;
};

/** Programs that look for secrets in sources know it by this. */
const BEGINNING = "key_";
const PREFIX_LENGTH = 12;

const LIST = `
  select id, prefix, role, owner_id as "ownerId", name, created_at as "createdAt", expires_at as "expiresAt",
    revoked_at as "revokedAt", last_used_at as "lastUsedAt"
  from auth.list_api_keys($1)`;

/** Keys of programs. Who shows one is recognised by `engine/caller`. */
export function makeApiKeys(asOwner: AsOwner): ApiKeys {
  return {
    async create({ role, ownerId = null, name = "", expiresAt = null }, sender = OPERATOR) {
      const key = BEGINNING + newSecret();
      const { rows } = await inTransaction(asOwner, (client) =>
        client.query<{ id: string }>(`select auth.create_api_key($2, $3, $4, $5, $6, $7, ${SENDER}) as id`, [
          senderValue(sender),
          digestOf(key),
          key.slice(0, PREFIX_LENGTH),
          role,
          ownerId,
          name,
          expiresAt,
        ]),
      );
      return { id: rows[0]!.id, key };
    },

    async list({ ownerId } = {}) {
      const { rows } = await asOwner((client) => client.query<ApiKey>(LIST, [ownerId ?? null]));
      return rows;
    },

    async revoke(id, { ownerId, sender = OPERATOR } = {}) {
      const { rows } = await inTransaction(asOwner, (client) =>
        client.query<{ revoked: boolean }>(`select auth.revoke_api_key($2, $3, ${SENDER}) as revoked`, [
          senderValue(sender),
          id,
          ownerId ?? null,
        ]),
      );
      if (!rows[0]!.revoked) {
        throw new ApiError(404, "RESOURCE_NOT_FOUND", "There is no such key, or it was revoked before.");
      }
    },
  };
}
