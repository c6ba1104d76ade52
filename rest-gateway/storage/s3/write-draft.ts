import { createHash } from "node:crypto";
import type { DraftFile, FileStore } from "#files";
import { explainStoreError } from "../storage-error.ts";
import { hashPieces } from "./entity-tags.ts";
import type { Payload } from "./payload.ts";

/** A draft with the MD5 of its content, which clients compare with the ETag. */
type TaggedDraft = { readonly draft: DraftFile; readonly md5: string };

/** Writes the content, and checks that it is the signed one. */
export async function writeDraft(payload: Payload, maxBytes: number, store: FileStore): Promise<DraftFile> {
  const draft = await store.draft(payload.content, maxBytes).catch((error) => {
    throw explainStoreError(error);
  });
  try {
    payload.checkHash(draft.hash);
    return draft;
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

/** Writes the content like `writeDraft`, and returns its MD5 too. */
export async function writeTaggedDraft(payload: Payload, maxBytes: number, store: FileStore): Promise<TaggedDraft> {
  const md5 = createHash("md5");
  const draft = await writeDraft({ ...payload, content: hashPieces(payload.content, md5) }, maxBytes, store);
  return { draft, md5: md5.digest("hex") };
}
