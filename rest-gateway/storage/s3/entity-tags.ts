import { createHash, type Hash } from "node:crypto";
import type { ObjectAddress, ObjectRow, UploadPart } from "../object-rows.ts";
import { s3Error } from "./s3-error.ts";
import type { S3Request } from "./s3-request.ts";

/** The tag of S3: the MD5 of an upload, or that of the MD5s of its parts, with their number. */
const MD5_TAG = /^"[0-9a-f]{32}(-\d+)?"$/;

/** Returns the tag. Objects that were uploaded by other ways have the SHA-256 of their content. */
export function tagOf({ content, metadata }: Pick<ObjectRow, "content" | "metadata">): string {
  const tag = metadata?.eTag;
  return tag !== undefined && MD5_TAG.test(tag) ? tag : `"${content}"`;
}

/** Finds the content of the object with this tag; the tag itself if there is none, since no content has that hash. */
export async function findTaggedContent(
  { rows }: S3Request,
  { bucket, name }: ObjectAddress,
  tag: string | null,
): Promise<string | null> {
  if (tag === null || !MD5_TAG.test(`"${tag}"`)) return tag;
  const [row] = await rows.findAllCurrent(bucket, [name]);
  return row?.content && tagOf(row) === `"${tag}"` ? row.content : tag;
}

/** A part with the client's name for it: the MD5 in the response to its upload, or the SHA-256 that lists show. */
export type NamedPart = UploadPart & { readonly tag: string };

export function mayNamePart(tag: string, { content }: UploadPart): boolean {
  return tag === content || MD5_TAG.test(`"${tag}"`);
}

/** Computes the tag of an object from its parts as they are read. */
export class PartTags {
  readonly #whole = createHash("md5");
  #count = 0;

  async *read({ tag, content: hash }: NamedPart, content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const md5 = createHash("md5");
    yield* hashPieces(content, md5);
    const digest = md5.digest();
    if (tag !== hash && tag !== digest.toString("hex")) throw s3Error("InvalidPart");
    this.#whole.update(digest);
    this.#count++;
  }

  finish(): string {
    return `"${this.#whole.digest("hex")}-${this.#count}"`;
  }
}

export async function* hashPieces(content: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const piece of content) {
    hash.update(piece);
    yield piece;
  }
}
