import type { Ask } from "../../../engine/database/as-login.ts";
import type { GatewayResponse } from "../../http.ts";
import { identityOf } from "../../idempotency/identity.ts";
import type { Change } from "../../idempotency/once.ts";
import type { Asked } from "../asked.ts";

type Means = Pick<Change, "key" | "transact"> & {
  readonly make: (asked: Asked, ask: Ask) => Promise<GatewayResponse>;
};

const ONE_DAY = 86_400;
/** Those by which another answer would be asked for, or another change made. */
const SHAPING = ["content-type", "accept", "if-match", "if-none-match"] as const;

/** A write under an Idempotency-Key. What it is told under one version of the interface is not what it is told under another. */
export async function resourceChange(asked: Asked, { key, transact, make }: Means): Promise<Change> {
  const { request, caller, address, collections } = asked;
  const { method, rawQuery, headers, signal } = request;
  const body = await request.readBody();
  const again: Asked = { ...asked, request: { ...request, readBody: () => Promise.resolve(body) } };
  const shaping = SHAPING.map((name) => String(headers[name] ?? ""));
  return {
    key,
    scope: "resource",
    identity: identityOf(caller),
    request: [method, address.canonical, rawQuery, String(collections.version), body, ...shaping],
    lifetimeSeconds: ONE_DAY,
    signal,
    transact,
    make: (ask) => make(again, ask),
  };
}
