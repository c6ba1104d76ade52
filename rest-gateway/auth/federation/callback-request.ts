import type { CallbackRequest } from "../../../engine/auth/federation/provider.ts";
import { PROVIDERS_PATH } from "../../../engine/auth/federation/service-urls.ts";
import type { GatewayRequest } from "../../http.ts";
import { readForm } from "../pages/read-form.ts";

/** Reads the provider's response from the query string or a posted form. */
export async function readCallbackRequest(request: GatewayRequest): Promise<CallbackRequest> {
  const form = request.method === "POST" ? await readForm(request) : new URLSearchParams();
  return { query: request.rawQuery, form };
}

/** `/auth/providers/example/callback` -> `example` and `callback` */
export function pathSegments({ path }: Pick<GatewayRequest, "path">): string[] {
  return path.slice(PROVIDERS_PATH.length).split("/").slice(1);
}

export function providerName(request: GatewayRequest): string {
  return pathSegments(request)[0]!;
}
