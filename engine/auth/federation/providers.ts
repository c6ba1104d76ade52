import type { TokenKeys } from "../../caller/keys.ts";
import { type AsOwner, inTransaction } from "../../database/as-owner.ts";
import { ApiError } from "../../errors.ts";
import { OPERATOR, SENDER, senderValue } from "../sender.ts";
import type { Provider, ProviderKind, ProviderSettings } from "./provider.ts";
import { openSecret, sealSecret } from "./provider-secret.ts";

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
  /** How many users have signed in through it. */
  readonly identities: number;
};

export type Providers = {
  /** One that is enabled. */
  find(name: string): Promise<Provider>;
  list(): Promise<ListedProvider[]>;
  add(provider: NewProvider): Promise<void>;
  remove(name: string): Promise<void>;
  enable(name: string): Promise<void>;
  disable(name: string): Promise<void>;
};

type Row = Omit<Provider, "clientId" | "secret"> & { client_id: string | null; client_secret: string | null };

const FIND = `
  select name, kind, issuer, client_id, client_secret, settings from auth.providers where name = $1 and enabled`;
const LIST = `
  select name, kind, title, issuer, client_id as "clientId", enabled, sign_ups as "signUps", identities::integer
  from auth.list_providers()`;

/** The providers through which users may sign in; the keys seal their secrets, and are asked for where there is one. */
export function makeProviders(asOwner: AsOwner, keys: () => Promise<TokenKeys>): Providers {
  const change = async (call: string, name: string): Promise<void> => {
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<{ done: boolean }>(`select ${call} as done`, [senderValue(OPERATOR), name]),
    );
    if (!rows[0]!.done) throw noSuchProvider();
  };

  return {
    async find(name) {
      const { rows } = await asOwner((client) => client.query<Row>(FIND, [name]));
      if (!rows[0]) throw noSuchProvider();
      const { client_id: clientId, client_secret: kept, ...provider } = rows[0];
      return { ...provider, clientId, secret: kept === null ? null : openSecret(kept, await keys()) };
    },
    async list() {
      const { rows } = await asOwner((client) => client.query<ListedProvider>(LIST));
      return rows;
    },
    async add({ clientId, secret, signUps, trustsEmail, trustsFactor, ...provider }) {
      const row = {
        ...provider,
        client_id: clientId,
        client_secret: secret === null ? null : sealSecret(secret, await keys()),
        sign_ups: signUps,
        trusts_email: trustsEmail,
        trusts_factor: trustsFactor,
      };
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.add_provider($2, ${SENDER})`, [senderValue(OPERATOR), JSON.stringify(row)]),
      );
    },
    remove: (name) => change(`auth.remove_provider($2, ${SENDER})`, name),
    enable: (name) => change(`auth.enable_provider($2, true, ${SENDER})`, name),
    disable: (name) => change(`auth.enable_provider($2, false, ${SENDER})`, name),
  };
}

function noSuchProvider(): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is no such provider, or it is disabled.", {
    hint: "GET /auth/providers lists those that there are.",
  });
}
