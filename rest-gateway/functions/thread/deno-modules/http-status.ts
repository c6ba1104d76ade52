// Deno's std/http/status.ts, and http_status.ts of older versions.

import { STATUS_CODES } from "node:http";

/** Names that are not the text without spaces. Versions of std have different ones. */
const OTHER_NAMES: Readonly<Record<string, number>> = {
  NonAuthoritativeInfo: 203,
  RequestEntityTooLarge: 413,
  ContentTooLarge: 413,
  RequestURITooLong: 414,
  RequestedRangeNotSatisfiable: 416,
  Teapot: 418,
};

export const STATUS_TEXT: Readonly<Record<number, string>> = { ...STATUS_CODES } as Record<number, string>;

export const STATUS_CODE: Readonly<Record<string, number>> = {
  ...Object.fromEntries(Object.entries(STATUS_TEXT).map(([code, text]) => [text.replaceAll(/\W/g, ""), Number(code)])),
  ...OTHER_NAMES,
};

export const Status = STATUS_CODE;

const isWithin = (first: number, last: number) => (status: number) => status >= first && status <= last;
export const isInformationalStatus = isWithin(100, 199);
export const isSuccessfulStatus = isWithin(200, 299);
export const isRedirectStatus = isWithin(300, 399);
export const isClientErrorStatus = isWithin(400, 499);
export const isServerErrorStatus = isWithin(500, 599);
export const isErrorStatus = isWithin(400, 599);
