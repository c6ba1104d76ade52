/** Turns a setting's text into its value, or throws an Error that says what is allowed. */
export type Reader<T> = (text: string) => T;

export const text: Reader<string> = (value) => value;

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): Reader<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return (value) => {
    const number = Number(value);
    if (!/^-?\d+$/.test(value) || number < least || number > most) throw new Error(`a whole number ${range}`);
    return number;
  };
}

export function oneOf<const T extends string>(...allowed: readonly T[]): Reader<T> {
  return (value) => {
    const match = allowed.find((option) => option === value);
    if (match === undefined) throw new Error(`one of ${allowed.join(", ")}`);
    return match;
  };
}

const YES = ["true", "yes", "on", "1"];
const NO = ["false", "no", "off", "0"];

export const flag: Reader<boolean> = (value) => {
  const word = value.toLowerCase();
  if (YES.includes(word)) return true;
  if (NO.includes(word)) return false;
  throw new Error("true or false");
};

export const list: Reader<readonly string[]> = (value) =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

export const someList: Reader<readonly string[]> = (value) => {
  const items = list(value);
  if (items.length === 0) throw new Error("one or more names, separated by commas");
  return items;
};

export const postgresUrl: Reader<string> = (value) => {
  if (!/^postgres(ql)?:\/\/\S+$/.test(value))
    throw new Error("a connection string like postgresql://user@host:5432/database");
  return value;
};

export const postgresUrls: Reader<readonly string[]> = (value) => list(value).map(postgresUrl);

/** HS256 wants at least 256 bits; a shorter secret can be guessed from one token. */
export const jwtSecret: Reader<string> = (value) => {
  if (value.length < 32) throw new Error("at least 32 characters");
  return value;
};

export const privateKey: Reader<string> = (value) => {
  const pem = value.replaceAll("\\n", "\n");
  if (!/^-----BEGIN (RSA )?PRIVATE KEY-----\n/.test(pem)) throw new Error("an RSA private key in PEM form");
  return pem;
};

/** What Express's "trust proxy" takes: a flag, a number of hops, or addresses and names such as loopback. */
export const trustProxy: Reader<boolean | number | readonly string[]> = (value) => {
  if (/^\d+$/.test(value)) return Number(value);
  if (YES.includes(value) || NO.includes(value)) return flag(value);
  return someList(value);
};

export const origins: Reader<readonly string[] | "*"> = (value) => {
  if (value.trim() === "*" || value.trim() === "") return "*";
  const items = list(value);
  const odd = items.find((item) => URL.parse(item)?.origin !== item);
  if (odd !== undefined) throw new Error(`* or origins such as https://app.example.com (not "${odd}")`);
  return items;
};

/** `.role` or `.realm_access."a role"[0]`, as in PostgREST */
export const claimPath: Reader<readonly (string | number)[]> = (value) => {
  const steps = [...value.matchAll(/\.([\w-]+)|\."([^"]+)"|\[(\d+)\]/gy)];
  if (steps.length === 0 || steps.map(([whole]) => whole).join("") !== value) {
    throw new Error('a path such as .role or .app_metadata."user role"[0]');
  }
  return steps.map(([, word, quoted, index]) => (index === undefined ? (word ?? quoted ?? "") : Number(index)));
};
