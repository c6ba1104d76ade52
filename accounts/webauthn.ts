import { isIP } from "node:net";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import type { Config } from "#config";

/** The library is loaded at first use, because its certificate parsers are a tenth of all modules. */
const loadLibrary = () => import("@simplewebauthn/server");

/** ES256, EdDSA and RS256: all authenticators support one of them. */
const ALGORITHMS = [-7, -8, -257];

/** A public key, as `auth.passkeys` stores it. */
export type Passkey = {
  readonly id: string;
  readonly userId: string;
  /** Null for a passkey that users sign in with; otherwise the id of the second factor. */
  readonly factorId: string | null;
  readonly friendlyName: string;
  readonly credentialId: string;
  readonly publicKey: Buffer;
  readonly counter: string;
  readonly transports: readonly string[];
  readonly isBackupEligible: boolean;
  readonly isBackedUp: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastUsedAt: Date | null;
};

/** The columns of `auth.passkeys` that an authenticator states. */
export type RegisteredCredential = {
  readonly credential_id: string;
  /** The key in the input format of bytea. */
  readonly public_key: string;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly aaguid: string;
  readonly is_backup_eligible: boolean;
  readonly is_backed_up: boolean;
};

type PasskeyUse = { readonly counter: number; readonly isBackedUp: boolean };

/** The user that an authenticator stores with the key. */
export type PasskeyUser = { readonly uuid: string; readonly username: string };

/** `passkey` signs in by itself, so it must find and verify the user. `factor` proves possession after the password. */
type KeyPurpose = "passkey" | "factor";

type KnownKey = Pick<Passkey, "credentialId" | "transports">;

export type WebAuthn = {
  registrationOptions(
    user: PasskeyUser,
    existing: readonly KnownKey[],
    purpose: KeyPurpose,
  ): Promise<PublicKeyCredentialCreationOptionsJSON>;
  /** If no keys are known, the authenticator offers the user's passkeys for this service. */
  requestOptions(known: readonly KnownKey[], purpose: KeyPurpose): Promise<PublicKeyCredentialRequestOptionsJSON>;
  /** Returns null if the response of the client is not valid. */
  verifyRegistration(response: unknown, challenge: string, purpose: KeyPurpose): Promise<RegisteredCredential | null>;
  verifyUse(response: unknown, challenge: string, key: Passkey, purpose: KeyPurpose): Promise<PasskeyUse | null>;
};

type WebAuthnOptions = {
  readonly config: Pick<
    Config,
    "jwtIssuer" | "webauthnRpId" | "webauthnOrigins" | "applicationUrl" | "corsOrigins" | "signInRedirects"
  >;
  readonly siteUrl: () => string;
};

export function makeWebAuthn({ config, siteUrl }: WebAuthnOptions): WebAuthn {
  const rpId = () => config.webauthnRpId ?? defaultRpId(siteUrl());
  const selectionFor = (purpose: KeyPurpose) =>
    purpose === "passkey"
      ? ({ residentKey: "required", userVerification: "required" } as const)
      : ({ residentKey: "preferred", userVerification: "preferred" } as const);
  const expectations = (response: unknown, challenge: string, purpose: KeyPurpose) => ({
    expectedChallenge: challenge,
    expectedOrigin: allowedOrigins(config, siteUrl(), rpId(), response),
    expectedRPID: rpId(),
    requireUserVerification: purpose === "passkey",
  });

  return {
    async registrationOptions({ uuid, username }, existing, purpose) {
      const { generateRegistrationOptions } = await loadLibrary();
      return generateRegistrationOptions({
        rpName: config.jwtIssuer,
        rpID: rpId(),
        userID: new TextEncoder().encode(uuid),
        userName: username,
        userDisplayName: username,
        excludeCredentials: existing.map(toDescriptor),
        authenticatorSelection: selectionFor(purpose),
        supportedAlgorithmIDs: ALGORITHMS,
      });
    },
    async requestOptions(known, purpose) {
      const { generateAuthenticationOptions } = await loadLibrary();
      return generateAuthenticationOptions({
        rpID: rpId(),
        allowCredentials: known.map(toDescriptor),
        userVerification: selectionFor(purpose).userVerification,
      });
    },
    async verifyRegistration(response, challenge, purpose) {
      const { verifyRegistrationResponse } = await loadLibrary();
      return nullOnError(async () => {
        const { verified, registrationInfo } = await verifyRegistrationResponse({
          ...expectations(response, challenge, purpose),
          response: response as RegistrationResponseJSON,
          supportedAlgorithmIDs: ALGORITHMS,
        });
        if (!verified) return null;
        const { credential, aaguid, credentialDeviceType, credentialBackedUp } = registrationInfo;
        return {
          credential_id: credential.id,
          public_key: `\\x${Buffer.from(credential.publicKey).toString("hex")}`,
          counter: credential.counter,
          transports: credential.transports ?? [],
          aaguid,
          is_backup_eligible: credentialDeviceType === "multiDevice",
          is_backed_up: credentialBackedUp,
        };
      });
    },
    async verifyUse(response, challenge, key, purpose) {
      const { verifyAuthenticationResponse } = await loadLibrary();
      return nullOnError(async () => {
        const { verified, authenticationInfo } = await verifyAuthenticationResponse({
          ...expectations(response, challenge, purpose),
          response: response as AuthenticationResponseJSON,
          credential: { id: key.credentialId, publicKey: new Uint8Array(key.publicKey), counter: Number(key.counter) },
        });
        if (!verified) return null;
        return { counter: authenticationInfo.newCounter, isBackedUp: authenticationInfo.credentialBackedUp };
      });
    },
  };
}

function toDescriptor({ credentialId, transports }: KnownKey): { id: string; transports: string[] } {
  return { id: credentialId, transports: [...transports] };
}

/** The library throws for a response that is malformed, or signed for another challenge, origin or key. */
async function nullOnError<T>(verify: () => Promise<T | null>): Promise<T | null> {
  try {
    return await verify();
  } catch {
    return null;
  }
}

/** Browsers refuse an IP address as relying party; the service also answers at localhost. */
function defaultRpId(siteUrl: string): string {
  const { hostname } = new URL(siteUrl);
  return isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? hostname : "localhost";
}

/** The origins of the pages that may use passkeys: this service's and the application's. */
function allowedOrigins(
  { webauthnOrigins, applicationUrl, corsOrigins, signInRedirects }: WebAuthnOptions["config"],
  siteUrl: string,
  rpId: string,
  response: unknown,
): string[] {
  if (webauthnOrigins.length > 0) return [...webauthnOrigins];
  const listed = [
    new URL(siteUrl).origin,
    ...(applicationUrl === null ? [] : [new URL(applicationUrl).origin]),
    ...(corsOrigins === "*" ? [] : corsOrigins),
    ...signInRedirects.map((target) => new URL(target).origin),
  ];
  // During development, applications have a port of their own. Only this machine has pages of localhost.
  const sent = rpId === "localhost" ? originOf(response) : null;
  return sent !== null && /^https?:\/\/localhost(:\d+)?$/.test(sent) ? [...listed, sent] : listed;
}

/** Returns the origin that the browser states; the authenticator signs it. */
function originOf(response: unknown): string | null {
  const { clientDataJSON } = (response as RegistrationResponseJSON).response;
  const { origin } = JSON.parse(Buffer.from(clientDataJSON, "base64url").toString("utf8"));
  return typeof origin === "string" ? origin : null;
}
