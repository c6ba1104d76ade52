// Deno's std/uuid/mod.ts.

import { createHash, randomBytes } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** The time of UUIDs counts 100 nanoseconds since 1582. */
const TICKS_BEFORE_1970 = 122_192_928_000_000_000n;

export const NIL_UUID = "00000000-0000-0000-0000-000000000000";

export function isNil(uuid: string): boolean {
  return uuid === NIL_UUID;
}

export function validate(uuid: string): boolean {
  return UUID.test(uuid);
}

export function version(uuid: string): number {
  if (!validate(uuid)) throw new TypeError(`${uuid} is no UUID`);
  return Number.parseInt(uuid[14]!, 16);
}

const validatorOf = (number: number) => (uuid: string) => validate(uuid) && version(uuid) === number;

export const v1 = { validate: validatorOf(1), generate: generateByTime };
export const v3 = { validate: validatorOf(3), generate: generatorByName("md5", 3) };
export const v4 = { validate: validatorOf(4), generate: () => crypto.randomUUID() };
export const v5 = { validate: validatorOf(5), generate: generatorByName("sha1", 5) };

function generateByTime(): string {
  const microseconds = BigInt(Math.floor((performance.timeOrigin + performance.now()) * 1000));
  const ticks = (microseconds * 10n + TICKS_BEFORE_1970).toString(16).padStart(15, "0");
  const random = randomBytes(8);
  // The lowest bit of the first byte says that the node is no network address.
  random[2]! |= 1;
  return format(
    Buffer.concat([Buffer.from(`${ticks.slice(7)}${ticks.slice(3, 7)}0${ticks.slice(0, 3)}`, "hex"), random]),
    1,
  );
}

function generatorByName(digest: "md5" | "sha1", number: number) {
  return async (namespace: string, data: Uint8Array): Promise<string> => {
    const prefix = Buffer.from(namespace.replaceAll("-", ""), "hex");
    return format(createHash(digest).update(prefix).update(data).digest(), number);
  };
}

/** Sets the version and the variant. */
function format(bytes: Buffer, number: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (number << 4);
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
