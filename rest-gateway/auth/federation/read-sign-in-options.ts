import type { RequestedSignIn } from "../../../engine/auth/federation/oauth-state-store.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";

const MODES = ["session", "token"] as const;
/** The base64url of a SHA-256 (RFC 7636 §4.2). */
const CHALLENGE = /^[\w-]{43}$/;

/** `?redirect_to=https://app.example.com/&mode=token&code_challenge=…` */
export function readSignInOptions({ rawQuery }: Pick<GatewayRequest, "rawQuery">): RequestedSignIn {
  const query = new URLSearchParams(rawQuery);
  const mode = MODES.find((each) => each === (query.get("mode") ?? "session"));
  if (!mode) throw parameterError("mode", `Use ${MODES.join(" or ")}.`);
  const codeChallenge = query.get("code_challenge");
  const method = query.get("code_challenge_method") ?? "S256";
  if (method !== "S256") throw parameterError("code_challenge_method", "Only S256 is supported.");
  if (codeChallenge !== null && !CHALLENGE.test(codeChallenge)) {
    throw parameterError("code_challenge", "Send the verifier's SHA-256 in base64url.");
  }
  const redirectTo = { text: query.get("redirect_to"), field: "redirect_to" };
  return { mode, redirectTo, codeChallenge, userId: null };
}

function parameterError(field: string, message: string): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", `Invalid parameter: ${field}.`, { details: [{ field, message }] });
}
