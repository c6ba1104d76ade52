import { createHash } from "node:crypto";
import type { DraftFile, FileStore } from "#files";
import { explainStoreError } from "../storage-error.ts";
import { hashPieces } from "./entity-tags.ts";
import type { Payload } from "./payload.ts";

/** Clients compare the ETag with the MD5 of what they have sent. */
type TaggedDraft = { readonly draft: DraftFile; readonly md5: string };

/** Writes the content, and checks that it is the one that was signed. */
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

/** The same, with the MD5 of the content. */
export async function writeTaggedDraft(payload: Payload, maxBytes: number, store: FileStore): Promise<TaggedDraft> {
  const md5 = createHash("md5");
  const draft = await writeDraft({ ...payload, content: hashPieces(payload.content, md5) }, maxBytes, store);
  return { draft, md5: md5.digest("hex") };
}
