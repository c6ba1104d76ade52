import type { OAuthTokens } from "#accounts";
import { API_RESOURCE, MCP_RESOURCE, resourceAddress } from "#accounts/identity";
import type { Config } from "#config";
import { type GatewayRoutes, jsonResponse } from "#http";
import { AUTH_METHODS, GRANT_TYPES, SECRET_METHODS } from "./client-store.ts";
import { supportedScopes } from "./scopes.ts";

/** The path of the endpoints, below the public address. */
const OAUTH_PREFIX = "/auth/v1/oauth";

/** The resources that tokens are issued for, as paths below the public address. */
export const OAUTH_RESOURCES: readonly string[] = [API_RESOURCE, MCP_RESOURCE];

const CACHE_FIVE_MINUTES = { "Cache-Control": "public, max-age=300" };

type MetadataOptions = {
  readonly tokens: OAuthTokens;
  readonly config: Pick<Config, "oauthDynamicRegistration" | "oauthClientDocuments" | "mcp">;
};

/** Routes by which clients discover how to get a token: RFC 9728 (resources), RFC 8414 (the server), OpenID Connect Discovery. */
export function metadataRoutes({ tokens, config }: MetadataOptions): GatewayRoutes {
  const scopes = supportedScopes(tokens.canBeVerified);
  const respond = (describe: () => object) => ({ GET: () => jsonResponse(200, describe(), CACHE_FIVE_MINUTES) });
  const resources = OAUTH_RESOURCES.map((path) => [
    `/.well-known/oauth-protected-resource${path}`,
    respond(() => ({
      resource: resourceAddress(tokens.issuer(), path),
      authorization_servers: [tokens.issuer()],
      scopes_supported: path === MCP_RESOURCE ? agentScopes(config) : scopes,
      bearer_methods_supported: ["header"],
      ...(tokens.canBeVerified && { jwks_uri: `${tokens.issuer()}/.well-known/jwks.json` }),
    })),
  ]);
  const server = respond(() => describeServer(tokens, scopes, config));
  return {
    ...Object.fromEntries(resources),
    "/.well-known/oauth-authorization-server": server,
    // Nobody could verify ID tokens that are signed with a secret.
    ...(tokens.canBeVerified && { "/.well-known/openid-configuration": server }),
  };
}

/** The scopes for agents, which request all that are named, so scopes about the user are left out. */
const agentScopes = ({ mcp }: Pick<Config, "mcp">) => (mcp === "write" ? ["read", "write"] : ["read"]);

function describeServer(
  { issuer, canBeVerified, algorithm }: OAuthTokens,
  scopes: readonly string[],
  { oauthDynamicRegistration, oauthClientDocuments }: MetadataOptions["config"],
): object {
  const endpoint = (name: string) => `${issuer()}${OAUTH_PREFIX}/${name}`;
  return {
    issuer: issuer(),
    authorization_endpoint: endpoint("authorize"),
    token_endpoint: endpoint("token"),
    revocation_endpoint: endpoint("revoke"),
    introspection_endpoint: endpoint("introspect"),
    ...(oauthDynamicRegistration && { registration_endpoint: endpoint("clients/register") }),
    scopes_supported: scopes,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: GRANT_TYPES,
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint_auth_methods_supported: SECRET_METHODS,
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: oauthClientDocuments,
    ...(canBeVerified && {
      jwks_uri: `${issuer()}/.well-known/jwks.json`,
      userinfo_endpoint: endpoint("userinfo"),
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [algorithm],
      claims_supported: [
        "sub",
        "iss",
        "aud",
        "exp",
        "iat",
        "auth_time",
        "nonce",
        "name",
        "email",
        "email_verified",
        "phone_number",
      ],
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      prompt_values_supported: ["none", "consent"],
    }),
  };
}
