import { HttpError } from "#http";
import type { ApiErrorDetails } from "#runtime";

export function invalidRequest(message: string, details: ApiErrorDetails | null = null): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", message, { details });
}

export function permissionDenied(message: string, hint: string | null = null): HttpError {
  return new HttpError(403, "PERMISSION_DENIED", message, { hint });
}

export function resourceNotFound(message: string): HttpError {
  return new HttpError(404, "RESOURCE_NOT_FOUND", message);
}
