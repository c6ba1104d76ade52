import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { CLIENT_INFO_SQL, clientInfoParameter, OPERATOR } from "../identity/client-info.ts";
import { openSealedText, sealText } from "../identity/sealed-text.ts";
import type { IssuingKeys } from "../identity/token-keys.ts";
import type { Provider, ProviderKind, ProviderSettings } from "./provider.ts";

const ENCRYPTED_PREFIX = "sealed:";
const SECRET_KEY_PURPOSE = "provider secret";

export type NewProvider = {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly issuer: string;
  readonly title: string | null;
  readonly clientId: string | null;
  readonly secret: string | null;
  readonly signUps: boolean;
  readonly trustsEmail: boolean;
  readonly trustsFactor: boolean;
  readonly settings: ProviderSettings;
};

export type ListedProvider = {
  readonly name: string;
  readonly kind: ProviderKind;
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string | null;
  readonly enabled: boolean;
  readonly signUps: boolean;
  /** The number of linked users. */
  readonly identities: number;
};

export type Providers = {
  /** Throws 404 unless the provider exists and is enabled. */
  find(name: string): Promise<Provider>;
  findOrganisation(by: { readonly name: string } | { readonly domain: string }): Promise<string | null>;
  list(): Promise<ListedProvider[]>;
  add(provider: NewProvider): Promise<void>;
  remove(name: string): Promise<void>;
  enable(name: string): Promise<void>;
  disable(name: string): Promise<void>;
};

type ProviderRow = Omit<Provider, "clientId" | "secret"> & { client_id: string | null; client_secret: string | null };

const FIND_PROVIDER = `
  select name, kind, issuer, client_id, client_secret, settings from auth.providers where name = $1 and enabled`;
const FIND_ORGANISATION = `
  select name from auth.providers
  where enabled and kind = 'saml' and (name = $1 or settings -> 'domains' ? pg_catalog.lower($2)) order by name limit 1`;
const LIST_PROVIDERS = `
  select name, kind, title, issuer, client_id as "clientId", enabled, sign_ups as "signUps", identities::integer
  from auth.list_providers()`;

/** Manages identity providers. `keys` is only called to encrypt or decrypt a secret. */
export function makeProviders(asOwner: AsOwner, keys: () => Promise<IssuingKeys>): Providers {
  const callByName = async (call: string, name: string): Promise<void> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ done: boolean }>(`select ${call} as done`, [clientInfoParameter(OPERATOR), name]),
    );
    if (!rows[0]!.done) throw providerNotFound();
  };

  return {
    async find(name) {
      const { rows } = await asOwner((client) => client.query<ProviderRow>(FIND_PROVIDER, [name]));
      if (!rows[0]) throw providerNotFound();
      const { client_id: clientId, client_secret: stored, ...provider } = rows[0];
      return { ...provider, clientId, secret: stored === null ? null : decryptSecret(stored, await keys()) };
    },
    async findOrganisation(by) {
      const values = "name" in by ? [by.name, null] : [null, by.domain];
      const { rows } = await asOwner((client) => client.query<{ name: string }>(FIND_ORGANISATION, values));
      return rows[0]?.name ?? null;
    },
    async list() {
      const { rows } = await asOwner((client) => client.query<ListedProvider>(LIST_PROVIDERS));
      return rows;
    },
    async add({ clientId, secret, signUps, trustsEmail, trustsFactor, ...provider }) {
      const row = {
        ...provider,
        client_id: clientId,
        client_secret: secret === null ? null : encryptSecret(secret, await keys()),
        sign_ups: signUps,
        trusts_email: trustsEmail,
        trusts_factor: trustsFactor,
      };
      await inOwnerTransaction(asOwner, (client) =>
        client.query(`select auth.add_provider($2, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(OPERATOR),
          JSON.stringify(row),
        ]),
      );
    },
    remove: (name) => callByName(`auth.remove_provider($2, ${CLIENT_INFO_SQL})`, name),
    enable: (name) => callByName(`auth.enable_provider($2, true, ${CLIENT_INFO_SQL})`, name),
    disable: (name) => callByName(`auth.enable_provider($2, false, ${CLIENT_INFO_SQL})`, name),
  };
}

function providerNotFound(): ApiError {
  return new ApiError("notFound", "RESOURCE_NOT_FOUND", "The provider does not exist, or is disabled.", {
    hint: "GET /auth/providers lists the enabled providers.",
  });
}

/** Encrypts a client secret with the deployment's key. It cannot be stored as a digest, because it is sent to the provider. */
export function encryptSecret(secret: string, keys: IssuingKeys): string {
  return ENCRYPTED_PREFIX + sealText(secret, keys, SECRET_KEY_PURPOSE).toString("base64");
}

/** A secret that was inserted by SQL is stored as plain text. */
export function decryptSecret(stored: string, keys: IssuingKeys): string {
  if (!stored.startsWith(ENCRYPTED_PREFIX)) return stored;
  const sealed = Buffer.from(stored.slice(ENCRYPTED_PREFIX.length), "base64");
  const secret = openSealedText(sealed, keys, SECRET_KEY_PURPOSE);
  if (secret !== null) return secret;
  throw new Error(
    "The provider's secret was encrypted with another JWT_SECRET or JWT_PRIVATE_KEY: remove the provider and add it again.",
  );
}
