import { randomInt, randomUUID } from "node:crypto";
import { ask } from "./ask.ts";
import { failureOf } from "./attack.ts";
import { JSON_TYPE } from "./callers.ts";

export const PASSWORD = "Tangerine-Boat-7";

const NEW_ADDRESSES = 60_000;

/** A user with the address of the user's client. */
export type Account = { readonly email: string; readonly address: string };

export async function register(url: string, address: string): Promise<Account> {
  const email = `${randomUUID()}@example.org`;
  const { status, text } = await send(url, "/auth/register", address, { name: "Ann", email, password: PASSWORD });
  if (status !== 201) throw new Error(`Not registered: ${status} ${text}`);
  return { email, address };
}

/** Returns the status, or the reason why there is none. */
export async function signIn(url: string, { email, address }: Account, password: string): Promise<string> {
  const answer = send(url, "/auth/login", address, { username: email, password });
  return answer.then(({ status }) => String(status), failureOf);
}

/** Returns one of many addresses, each in another range. */
export function randomAddress(network: number): string {
  const number = randomInt(NEW_ADDRESSES);
  return `${network}.${number >> 8}.${number & 255}.1`;
}

/** Sends a request from the address; the service trusts proxies on this machine. */
function send(url: string, path: string, address: string, body: object) {
  const headers = { ...JSON_TYPE, "X-Forwarded-For": address };
  return ask(url + path, { method: "POST", headers, body: JSON.stringify(body) });
}
