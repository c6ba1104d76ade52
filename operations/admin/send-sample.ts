import { ApiError } from "#runtime";
import { invalidRequest, stateConflict } from "./admin-errors.ts";

const EMAIL_PATTERN = /^[^@\s]+@[^@\s]+$/;

export function requireEmail(text: string): void {
  if (!EMAIL_PATTERN.test(text)) throw invalidRequest("The member email must be an e-mail address.");
}

/** Sends a sample. If the server of e-mails refuses it, the administrator reads why. */
export async function sendSample(email: string, send: (to: string) => Promise<void>): Promise<void> {
  requireEmail(email);
  try {
    await send(email);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw stateConflict(`The e-mail could not be sent: ${(error as Error).message}`, error);
  }
}
