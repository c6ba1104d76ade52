import {
  canIssueTokens,
  type IssuingKeys,
  makeProjectKeys,
  makeRoleKey,
  type RemoteKeySet,
  SERVICE_ROLE,
  type TokenKeys,
  toVerifyingKeySet,
} from "#accounts/identity";
import type { ServedPostgres } from "#cluster";
import type { Config } from "#config";
import { RequestLimit } from "#postgres/rate-limits";
import { CallAudit, ClientRequests, type ExtendServer } from "#rest-gateway/mcp";
import type { ServiceCore } from "./shared-services.ts";

/** The services that calls of agents need for as long as the service runs. */
export type AgentServices = {
  readonly audit: CallAudit;
  /** The limit of calls. If null, calls are limited like other requests only. */
  readonly limit: RequestLimit | null;
  readonly clientRequests: ClientRequests;
  /** Adds the features that the protocol tests call. */
  readonly extend: ExtendServer | undefined;
};

export function openAgentServices(
  { config, asOwner, supervisor, peers, log }: ServiceCore,
  extend: ExtendServer | undefined,
  opened: AsyncDisposableStack,
): AgentServices {
  const audit = new CallAudit(asOwner, log);
  const isLimited = config.mcp !== "off" && config.mcpRateLimit > 0;
  const limit = isLimited ? new RequestLimit({ limit: config.mcpRateLimit, asOwner, supervisor, log }) : null;
  opened.defer(() => limit?.close());
  opened.defer(() => audit.write());
  return { audit, limit, clientRequests: new ClientRequests(peers), extend };
}

type FunctionEnvironmentOptions = {
  readonly postgres: Pick<ServedPostgres, "clientUrl">;
  readonly settings: { current(): Config };
};

type ExtensionState = {
  readonly siteUrl: string | null;
  readonly identification: { readonly keys: TokenKeys; readonly remoteKeys: Pick<RemoteKeySet, "current"> | null };
};

type Environment = Readonly<Record<string, string>>;

/**
 * Returns a function that returns the variables that functions read with `Deno.env` besides their secrets, like on Supabase. It
 * returns the same object until a setting or a key changes.
 */
export function makeFunctionEnvironment(
  { postgres, settings }: FunctionEnvironmentOptions,
  state: ExtensionState,
): () => Environment {
  let sources: readonly unknown[] = [];
  let environment: Environment = {};
  return () => {
    const { siteUrl, identification } = state;
    const config = settings.current();
    const remoteKeys = identification.remoteKeys?.current() ?? null;
    const current = [siteUrl, config, identification, remoteKeys];
    if (!current.every((source, index) => source === sources[index])) {
      environment = {
        SUPABASE_URL: siteUrl ?? "",
        // Without a key that signs, there are no keys of clients.
        ...(canIssueTokens(identification.keys) && keysForFunctions(identification.keys, config)),
        ...verifyingKeys(identification.keys, remoteKeys, config),
        SUPABASE_DB_URL: postgres.clientUrl,
      };
      sources = current;
    }
    return environment;
  };
}

/** Returns the keys that verify tokens; their address if they are all those of another issuer, which libraries then fetch themselves. */
function verifyingKeys(
  keys: TokenKeys,
  remoteKeys: TokenKeys["verifying"] | null,
  { jwtKeySetUrl }: Config,
): Environment {
  const { verifying } = keys;
  if (jwtKeySetUrl !== null && verifying.length === 0) return { SUPABASE_JWKS_URL: jwtKeySetUrl };
  const all = { ...keys, verifying: [...verifying, ...(remoteKeys ?? [])] };
  return { SUPABASE_JWKS: JSON.stringify({ keys: toVerifyingKeySet(all) }) };
}

function keysForFunctions(keys: IssuingKeys, config: Config): Readonly<Record<string, string>> {
  const { publishable, secret } = makeProjectKeys(keys);
  return {
    SUPABASE_ANON_KEY: makeRoleKey(config.anonRole, keys, config),
    SUPABASE_SERVICE_ROLE_KEY: makeRoleKey(SERVICE_ROLE, keys, config),
    SUPABASE_PUBLISHABLE_KEY: publishable,
    SUPABASE_PUBLISHABLE_KEYS: JSON.stringify({ default: publishable }),
    SUPABASE_SECRET_KEY: secret,
    SUPABASE_SECRET_KEYS: JSON.stringify({ default: secret }),
  };
}
