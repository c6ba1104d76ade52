import type { Ask } from "../../../engine/database/as-login.ts";
import { queryWithoutApiKey } from "../../auth/credentials.ts";
import type { GatewayResponse } from "../../http.ts";
import type { KeyedRequest } from "../../idempotency/idempotent-runner.ts";
import { type Asked, readBody, withBody } from "../asked.ts";

type KeyedChange = Pick<KeyedRequest, "key"> & {
  readonly make: (asked: Asked, ask: Ask) => Promise<GatewayResponse>;
};

const SHAPING = ["content-type", "accept", "if-match", "if-none-match", "if-unmodified-since"] as const;

/** A write under an Idempotency-Key. What it is told under one version of the interface is not what it is told under another. */
export async function resourceChange(asked: Asked, { key, make }: KeyedChange): Promise<KeyedRequest> {
  const { request, caller, address, collections } = asked;
  const body = await readBody(asked);
  const again = withBody(asked, body);
  return {
    key,
    scope: "resource",
    caller,
    request,
    parts: [request.method, address.canonical, queryWithoutApiKey(request.rawQuery), String(collections.version), body],
    shaping: SHAPING,
    make: (ask) => make(again, ask),
  };
}
