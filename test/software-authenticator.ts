import { createHash, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import { isoCBOR } from "@simplewebauthn/server/helpers";

const [PRESENT, VERIFIED, HAS_CREDENTIAL] = [0x01, 0x04, 0x40];

type AuthenticatorOptions = {
  readonly origin?: string;
  readonly rpId?: string;
  /** True if it asks for a PIN or a finger. */
  readonly verifiesUser?: boolean;
  /** True if somebody touches it. */
  readonly isTouched?: boolean;
  /** The id of the credential, which another one may have. */
  readonly id?: Buffer;
};

/** A security key with one ES256 key, as a browser at the origin presents it. */
export class SoftwareAuthenticator {
  readonly #origin: string;
  readonly #rpId: string;
  readonly #flags: number;
  readonly #id: Buffer;
  readonly #keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  userHandle = "";
  counter = 0;

  constructor({
    origin = "http://localhost:3000",
    rpId = "localhost",
    verifiesUser = true,
    isTouched = true,
    id = randomBytes(32),
  }: AuthenticatorOptions = {}) {
    this.#origin = origin;
    this.#rpId = rpId;
    this.#flags = (isTouched ? PRESENT : 0) | (verifiesUser ? VERIFIED : 0);
    this.#id = id;
  }

  create({ challenge, user }: PublicKeyCredentialCreationOptionsJSON): RegistrationResponseJSON {
    this.userHandle = user.id;
    const credential = Buffer.concat([
      Buffer.alloc(16),
      Buffer.from([0, this.#id.length]),
      this.#id,
      this.#publicKey(),
    ]);
    const authData = new Uint8Array(Buffer.concat([this.#authenticatorData(HAS_CREDENTIAL), credential]));
    const attestation = new Map<string, unknown>([
      ["fmt", "none"],
      ["attStmt", new Map()],
      ["authData", authData],
    ]);
    return {
      ...this.#named(),
      response: {
        attestationObject: encode(isoCBOR.encode(attestation as never)),
        clientDataJSON: encode(this.#clientData("webauthn.create", challenge)),
        transports: ["usb"],
      },
    };
  }

  get({ challenge }: PublicKeyCredentialRequestOptionsJSON): AuthenticationResponseJSON {
    this.counter += 1;
    const clientData = this.#clientData("webauthn.get", challenge);
    const authenticatorData = this.#authenticatorData(0);
    const signed = Buffer.concat([authenticatorData, createHash("sha256").update(clientData).digest()]);
    return {
      ...this.#named(),
      response: {
        authenticatorData: encode(authenticatorData),
        clientDataJSON: encode(clientData),
        signature: encode(createSign("sha256").update(signed).sign(this.#keys.privateKey)),
        userHandle: this.userHandle,
      },
    };
  }

  #named() {
    const id = encode(this.#id);
    return { id, rawId: id, type: "public-key", clientExtensionResults: {} } as const;
  }

  #clientData(type: string, challenge: string): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false }));
  }

  #authenticatorData(flags: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter);
    const rpIdHash = createHash("sha256").update(this.#rpId).digest();
    return Buffer.concat([rpIdHash, Buffer.from([this.#flags | flags]), counter]);
  }

  #publicKey(): Uint8Array {
    const { x, y } = this.#keys.publicKey.export({ format: "jwk" });
    const coordinate = (text: string) => new Uint8Array(Buffer.from(text, "base64url"));
    const key = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinate(x!)],
      [-3, coordinate(y!)],
    ]);
    return isoCBOR.encode(key as never);
  }
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}
