import {
  canIssueTokens,
  type IssuingKeys,
  makeProjectKeys,
  makeRoleKey,
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

type CurrentState = {
  readonly siteUrl: string | null;
  readonly identification: { readonly keys: TokenKeys };
};

/** The variables that functions read with `Deno.env` besides their secrets, like on Supabase. The keys are missing if no setting can sign them. */
export function functionEnvironment(
  { postgres, settings }: FunctionEnvironmentOptions,
  { siteUrl, identification: { keys } }: CurrentState,
): Readonly<Record<string, string>> {
  const config = settings.current();
  return {
    SUPABASE_URL: siteUrl ?? "",
    ...(canIssueTokens(keys) && keysForFunctions(keys, config)),
    // If another issuer signs users in, its keys verify their tokens.
    ...(config.jwtKeySetUrl === null
      ? { SUPABASE_JWKS: JSON.stringify({ keys: toVerifyingKeySet(keys) }) }
      : { SUPABASE_JWKS_URL: config.jwtKeySetUrl }),
    SUPABASE_DB_URL: postgres.clientUrl,
  };
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
