import { clientInfoOf, HttpError, jsonResponse, type MatchedRequest, type PatternRoutes } from "#http";
import { readClientMetadata, toClientJson } from "../oauth/client-metadata.ts";
import type { OAuthClient } from "../oauth/client-store.ts";
import { OAuthError, withOAuthErrors } from "../oauth/oauth-error.ts";
import type { OAuthServices } from "../oauth/oauth-services.ts";
import { readPageRequest } from "./admin-request.ts";
import { makeAdministrativeRoute, pageLinks } from "./admin-routes.ts";
import { readJsonBody } from "./auth-v1-request.ts";
import { authError } from "./errors.ts";

/** Handles `/oauth/clients/register`: an application registers itself (RFC 7591). */
export function registrationRoutes({ config, oauthStore: store, limitExpensive }: OAuthServices): PatternRoutes {
  if (!config.oauthDynamicRegistration) return {};
  return {
    "POST /oauth/clients/register": (request) =>
      withOAuthErrors(async () => {
        await limitExpensive(request);
        const metadata = readClientMetadata(await readJsonBody(request), "client_secret_basic");
        const { client, secret } = await store.register(
          { ...metadata, registration: "dynamic" },
          clientInfoOf(request),
        );
        return jsonResponse(201, {
          ...toClientJson(client, secret),
          client_id_issued_at: Math.floor(client.created_at.getTime() / 1000),
          ...(secret !== null && { client_secret_expires_at: 0 }),
        });
      }),
  };
}

/** Routes for `supabase.auth.admin.oauth`. */
export function clientAdministrationRoutes(services: OAuthServices): PatternRoutes {
  const { oauthStore: store } = services;
  const forAdministrators = makeAdministrativeRoute(services);
  const find = async ({ parameters }: MatchedRequest): Promise<OAuthClient> => {
    const client = await store.findClient(parameters.client ?? "");
    if (client) return client;
    throw authError(404, "oauth_client_not_found", "OAuth client not found");
  };
  return {
    "GET /admin/oauth/clients": forAdministrators(async ({ request }) => {
      const { page, perPage } = readPageRequest(request.query);
      const { total, clients } = await store.listClients(page, perPage);
      const headers = { "X-Total-Count": String(total), Link: pageLinks(request, page, Math.ceil(total / perPage)) };
      return jsonResponse(
        200,
        { clients: clients.map((client) => toClientJson(client)), aud: "authenticated" },
        headers,
      );
    }),
    "POST /admin/oauth/clients": forAdministrators(async ({ request }) => {
      const metadata = readMetadata(await readJsonBody(request));
      const { client, secret } = await store.register({ ...metadata, registration: "manual" }, clientInfoOf(request));
      return jsonResponse(201, toClientJson(client, secret));
    }),
    "GET /admin/oauth/clients/{client}": forAdministrators(async ({ request }) =>
      jsonResponse(200, toClientJson(await find(request))),
    ),
    "PUT /admin/oauth/clients/{client}": forAdministrators(async ({ request }) => {
      const client = await find(request);
      if (client.registration === "document") {
        throw authError(400, "validation_failed", "Change its document, which describes this client, or delete it");
      }
      const metadata = readMetadata({ ...toClientJson(client), ...(await readJsonBody(request)) });
      const changed = { ...client, ...metadata };
      const isKept = (metadata.auth_method === "none") === (client.auth_method === "none");
      if (isKept) return jsonResponse(200, toClientJson(await store.change(changed, clientInfoOf(request))));
      const { client: saved, secret } = await store.register(changed, clientInfoOf(request));
      return jsonResponse(200, toClientJson(saved, secret));
    }),
    "DELETE /admin/oauth/clients/{client}": forAdministrators(async ({ request }) => {
      await store.removeClient((await find(request)).id, clientInfoOf(request));
      return { status: 204, headers: {}, body: null };
    }),
    "POST /admin/oauth/clients/{client}/regenerate_secret": forAdministrators(async ({ request }) => {
      const client = await find(request);
      if (client.auth_method === "none") {
        throw authError(400, "validation_failed", "Cannot regenerate secret for public client");
      }
      const { client: saved, secret } = await store.register(client, clientInfoOf(request));
      return jsonResponse(200, toClientJson(saved, secret));
    }),
  };
}

/** Reads metadata; errors have the format of `/auth/v1`. */
function readMetadata(body: Readonly<Record<string, unknown>>) {
  try {
    if (typeof body.client_name !== "string" || body.client_name.trim() === "") {
      throw new OAuthError("invalid_client_metadata", "client_name is required");
    }
    return readClientMetadata(body, "client_secret_basic");
  } catch (thrown) {
    if (thrown instanceof OAuthError) throw new HttpError(400, "validation_failed", thrown.message);
    throw thrown;
  }
}
