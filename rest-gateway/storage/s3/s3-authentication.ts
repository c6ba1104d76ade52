import { type Caller, callerFromClaims, canIssueTokens, makeRoleKey } from "#accounts/identity";
import { type MatchedRequest, toHttpError } from "#http";
import type { StorageServices } from "../storage-request.ts";
import type { FormFields } from "./post-form.ts";
import { verifySignedForm } from "./post-policy.ts";
import { s3Error } from "./s3-error.ts";
import type { SignedPayload } from "./signed-payload.ts";
import { type FindSecrets, verifySignedRequest } from "./signed-request.ts";

type S3Authentication = {
  /** Authenticates a request with a signature in its headers or its address. */
  ofRequest(request: MatchedRequest): Promise<{ readonly caller: Caller; readonly payload: SignedPayload }>;
  /** Authenticates the signer of a form's policy. */
  ofForm(request: MatchedRequest, fields: FormFields): Promise<Caller>;
};

const SERVICE = callerFromClaims({ kind: "key", claimsText: '{"role":"service_role"}', expiresAt: null });

/**
 * Makes the authentication. The caller is that of the session token: any access token or API key. The secret is the token itself or, as
 * at
 * Supabase, the public key of the deployment. The access key of the settings is the service role.
 */
export function makeS3Authentication({ authenticate, keys, config }: StorageServices): S3Authentication {
  const { s3AccessKeyId, s3AccessKeySecret, anonRole } = config;
  const publicKey = canIssueTokens(keys) ? [makeRoleKey(anonRole, keys, config)] : [];
  const ofSettings = s3AccessKeyId !== null && s3AccessKeySecret !== null ? [s3AccessKeySecret] : [];
  const findSecrets: FindSecrets = (accessKeyId, sessionToken) => {
    if (sessionToken !== null) return [sessionToken, ...publicKey];
    return accessKeyId === s3AccessKeyId ? ofSettings : [];
  };
  const callerOf = async (request: MatchedRequest, sessionToken: string | null) => {
    if (sessionToken === null) return SERVICE;
    try {
      const { authorization: _signature, ...headers } = request.headers;
      const apikey = sessionToken;
      return await authenticate({ ...request, rawQuery: "", headers: { ...headers, apikey } });
    } catch (error) {
      const { status, code, message } = toHttpError(error);
      if (status !== 401) throw error;
      throw s3Error(code === "TOKEN_EXPIRED" ? "ExpiredToken" : "InvalidToken", message, { cause: error });
    }
  };
  return {
    async ofRequest(request) {
      const { sessionToken, payload } = verifySignedRequest(request, request.query, findSecrets);
      return { caller: await callerOf(request, sessionToken), payload };
    },
    async ofForm(request, fields) {
      return callerOf(request, verifySignedForm(fields, findSecrets));
    },
  };
}
