import type { AuthenticationResult } from "../../engine/caller/caller.ts";
import { wordOf } from "../../engine/errors.ts";

/** What an answer says beside `data` and `errors`. */
export type AnswerExtensions = {
  /** Why the operation ran as anonymous although a credential was shown. */
  readonly authentication: { readonly code: string; readonly message: string };
};

export function answerExtensions({ refusal }: AuthenticationResult): AnswerExtensions | undefined {
  return refusal ? { authentication: { code: wordOf(refusal), message: refusal.message } } : undefined;
}
