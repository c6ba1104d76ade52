import { PROVIDERS_PATH } from "../../../engine/auth/federation/addresses.ts";
import type { Arrival } from "../../../engine/auth/federation/provider.ts";
import type { GatewayRequest } from "../../http.ts";
import { readForm } from "../pages/read-form.ts";

/** What a browser brings back: in the address, or in a form that it was made to send. */
export async function readArrival(request: GatewayRequest): Promise<Arrival> {
  const form = request.method === "POST" ? await readForm(request) : new URLSearchParams();
  return { query: request.rawQuery, form };
}

/** `/auth/providers/example/callback` -> `example` and `callback` */
export function stepsOf({ path }: Pick<GatewayRequest, "path">): string[] {
  return path.slice(PROVIDERS_PATH.length).split("/").slice(1);
}

export function providerIn(request: GatewayRequest): string {
  return stepsOf(request)[0]!;
}
