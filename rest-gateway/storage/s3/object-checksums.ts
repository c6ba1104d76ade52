import { badDigest, CHECKSUM_PREFIX, CHECKSUMS } from "./checksums.ts";
import type { S3Request } from "./s3-request.ts";

/** The checksums of the object by header, if the body of the request is not the object. */
type ObjectChecksums = ReadonlyMap<string, string>;

/** Splits the checksums of the object that the request completes from the request. */
export function takeObjectChecksums(request: S3Request): { request: S3Request; checksums: ObjectChecksums } {
  const isOfObject = (name: string) => name.startsWith(CHECKSUM_PREFIX) && CHECKSUMS.has(name);
  const entries = Object.entries(request.headers);
  const headers = Object.fromEntries(entries.filter(([name]) => !isOfObject(name)));
  const checksums = new Map(entries.flatMap(([name, value]) => (isOfObject(name) ? [[name, String(value)]] : [])));
  return { request: { ...request, headers }, checksums };
}

/** Converts checksums to elements of a response, with names like `ChecksumCRC32`. */
export function checksumElements(checksums: ObjectChecksums): Record<string, string> {
  const shown = [...checksums].map(([name, value]) => [
    `Checksum${name.slice(CHECKSUM_PREFIX.length).toUpperCase()}`,
    value,
  ]);
  return Object.fromEntries(shown);
}

/** Joins the parts, and throws at their end unless they have these checksums. */
export async function* checkParts(
  parts: Iterable<AsyncIterable<Buffer>>,
  checksums: ObjectChecksums,
): AsyncGenerator<Buffer> {
  const checks = await Promise.all([...checksums].map(([name, value]) => openCheck(name, value)));
  for (const part of parts) {
    for await (const piece of part) {
      for (const check of checks) check.update(piece);
      yield piece;
    }
    for (const check of checks) await check.endPart();
  }
  for (const check of checks) check.compare();
}

/** Opens a check of the object's bytes, or, if a number of parts follows the value, of the checksums of its parts. */
async function openCheck(name: string, value: string) {
  const { open } = CHECKSUMS.get(name)!;
  const isComposite = /-\d+$/.test(value);
  const whole = await open();
  let part = isComposite ? await open() : whole;
  let parts = 0;
  return {
    update: (data: Buffer) => part.update(data),
    async endPart() {
      if (!isComposite) return;
      whole.update(Buffer.from(part.digest(), "base64"));
      part = await open();
      parts += 1;
    },
    compare() {
      const found = isComposite ? `${whole.digest()}-${parts}` : whole.digest();
      if (found !== value) throw badDigest(name);
    },
  };
}
