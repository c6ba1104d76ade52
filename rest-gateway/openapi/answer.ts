import type { DocumentCache } from "./document-cache.ts";
import { type Form, negotiateForm } from "./negotiate.ts";
import type { Subject } from "./subject.ts";
import { swaggerDocument } from "./swagger-document.ts";
import { tableDocument } from "./table-document.ts";
import { type Document, type WrittenDocument, writeDocument } from "./write.ts";

export type OpenApiAnswer = {
  readonly contentType: string;
  readonly document: WrittenDocument;
};

const DOCUMENTS: Readonly<Record<Form, (subject: Subject) => Promise<Document>>> = {
  "openapi-3.1": tableDocument,
  "swagger-2.0": swaggerDocument,
};

/** `GET /rest/v1/` */
export async function openApiAnswer(
  { accept, ...subject }: Subject & { readonly accept: string | undefined },
  documents: DocumentCache,
): Promise<OpenApiAnswer> {
  const { form, contentType } = negotiateForm(accept);
  const { catalog, role, schema, tables, mode, serverUrl, securityActive, version } = subject;
  const reader = mode === "follow-privileges" ? role : null;
  const key = JSON.stringify([form, schema, tables, mode, reader, serverUrl, securityActive, version]);
  const make = async () => writeDocument(await DOCUMENTS[form](subject));
  return { contentType, document: await documents.get(key, catalog.version, make) };
}
