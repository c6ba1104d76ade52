import jwt from "jsonwebtoken";
import type { Area, Case } from "../rest-gateway/table/differential/case.ts";
import { SECRET } from "../secret.ts";
import type { ComparedRequest } from "./send-request.ts";

/** The requests that are compared with PostgREST. */
export function tableRequests({ groups }: Area): ComparedRequest[] {
  return groups.flatMap(({ cases }) => cases.filter((one) => !isMeasured(one) && !isTimed(one)).map(toRequest));
}

/** True for a plan that was executed: its times differ between runs. */
function isMeasured({ headers }: Case): boolean {
  return /analyze/.test(headers.Accept ?? "");
}

/** A token with a time is accepted on some days and refused on others. */
function isTimed({ caller }: Case): boolean {
  return typeof caller === "object" && ["exp", "nbf", "iat"].some((claim) => claim in caller);
}

function toRequest({ method, path, headers, body, caller }: Case): ComparedRequest {
  return {
    method,
    path: `/rest/v1${path}`,
    headers: { ...authorization(caller), ...headers },
    body: body === null ? null : Buffer.from(body as string).toString("base64"),
  };
}

function authorization(caller: Case["caller"]): Record<string, string> {
  if (caller === "anon") return {};
  const token = "token" in caller ? String(caller.token) : jwt.sign(caller, SECRET, { noTimestamp: true });
  return { Authorization: `Bearer ${token}` };
}
