import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { s3Error } from "./s3-error.ts";

/** The kind of the body's signature. */
export type SignedPayload =
  | { readonly kind: "digest"; readonly sha256: string }
  | { readonly kind: "unsigned" }
  | { readonly kind: "chunks"; readonly signature: ChunkSignature | null };

/** Continues the signature of the request over the chunks of its body. */
export type ChunkSignature = {
  readonly key: Buffer;
  /** The time and scope that all chunks are signed with. */
  readonly scope: string;
  readonly seed: string;
};

export function isSameSignature(computed: string, sent: string): boolean {
  return computed.length === sent.length && timingSafeEqual(Buffer.from(computed), Buffer.from(sent));
}

/** Returns the key for signatures of chunks, since the library signs only requests. */
export function signingKeyOf(secret: string, scope: string): Buffer {
  const [day = "", region = "", service = "", end = ""] = scope.split("\n")[1]!.split("/");
  return [day, region, service, end].reduce<Buffer>((key, part) => hmac(key, part), Buffer.from(`AWS4${secret}`));
}

/** Returns the signature of a text in hexadecimal digits. */
export function signText(text: string, secret: string, scope: string): string {
  return hmac(signingKeyOf(secret, scope), text).toString("hex");
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

const NOTHING = createHash("sha256").digest("hex");

/** Verifies the signatures of chunks, each of which covers the one before. */
export class ChunkVerifier {
  readonly #about: ChunkSignature;
  #previous: string;

  constructor(about: ChunkSignature) {
    this.#about = about;
    this.#previous = about.seed;
  }

  checkChunk(sha256: string, signature: string): void {
    this.#check(["AWS4-HMAC-SHA256-PAYLOAD", this.#about.scope, this.#previous, NOTHING, sha256], signature);
  }

  checkTrailer(sha256: string, signature: string): void {
    this.#check(["AWS4-HMAC-SHA256-TRAILER", this.#about.scope, this.#previous, sha256], signature);
  }

  #check(lines: readonly string[], signature: string): void {
    const expected = hmac(this.#about.key, lines.join("\n")).toString("hex");
    if (!isSameSignature(expected, signature)) throw s3Error("SignatureDoesNotMatch");
    this.#previous = expected;
  }
}
