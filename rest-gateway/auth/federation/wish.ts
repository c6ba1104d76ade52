import type { RequestedSignIn } from "../../../engine/auth/federation/departures.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";

const MODES = ["session", "token"] as const;
/** Base64url of SHA-256, RFC 7636 §4.2. */
const CHALLENGE = /^[\w-]{43}$/;

/** `?redirect_to=https://app.example.com/&mode=token&code_challenge=…` */
export function readWish({ rawQuery }: Pick<GatewayRequest, "rawQuery">): RequestedSignIn {
  const query = new URLSearchParams(rawQuery);
  const mode = MODES.find((each) => each === (query.get("mode") ?? "session"));
  if (!mode) throw refusal("mode", `Say ${MODES.join(" or ")}.`);
  const codeChallenge = query.get("code_challenge");
  const method = query.get("code_challenge_method") ?? "S256";
  if (method !== "S256") throw refusal("code_challenge_method", "S256 is the only one.");
  if (codeChallenge !== null && !CHALLENGE.test(codeChallenge)) {
    throw refusal("code_challenge", "Send the verifier's SHA-256 in base64url.");
  }
  const redirectTo = { text: query.get("redirect_to"), field: "redirect_to" };
  return { mode, redirectTo, codeChallenge, userId: null };
}

function refusal(field: string, message: string): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", `Not acceptable: ${field}.`, { details: [{ field, message }] });
}
