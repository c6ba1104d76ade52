import type { SendRequest } from "../../../studio/tables/edit/row-changes.ts";
import { token } from "../../realtime/service.ts";

/** Sends requests as this caller, and throws the error bodies of the service, as the pages' client does. */
export function senderFor(url: () => string, claims: object): SendRequest {
  return async (path, options) => {
    const credential = token(claims);
    const headers = { ...options.headers, apikey: credential, Authorization: `Bearer ${credential}` };
    const response = await fetch(url() + path, { ...options, headers });
    if (!response.ok) throw Object.assign(new Error(), { details: null, ...((await response.json()) as object) });
    return response;
  };
}
