import type { DraftFile, FileStore } from "#files";
import { explainStoreError } from "../storage-error.ts";
import type { Payload } from "./payload.ts";

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
