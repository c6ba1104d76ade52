import { useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Dialog } from "../components/dialog.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { html } from "../html.ts";
import { formatBytes } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { deleteFile, type FolderEntry, makeAddress, readText, type StoredBucket, signFile } from "./files-api.ts";

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)\b/;
const TEXT = /^text\/|json\b|xml\b|javascript\b/;

type FileDialogProps = {
  readonly bucket: StoredBucket;
  readonly name: string;
  readonly file: FolderEntry;
  readonly onDeleted: () => void;
  readonly onClose: () => void;
};

/** A file with its preview, its address, and a button that deletes it after a question. */
export function FileDialog({ bucket, name, file, onDeleted, onClose }: FileDialogProps) {
  const address = useLoaded(() => makeAddress(bucket, name), []);
  const [isAsking, setAsking] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const labels = texts.files;
  const { mimetype = "", size = 0 } = file.metadata ?? {};
  const remove = async () => {
    try {
      if (!(await deleteFile(bucket.id, name))) throw new Error(labels.notDeleted);
      onDeleted();
      onClose();
    } catch (thrown) {
      setFailure(thrown as Error);
    }
  };
  return html`
    <${Dialog} title=${name} onClose=${onClose}>
      <div class="stack">
        <p class="quiet">${mimetype}, ${formatBytes(size)}</p>
        <${Preview} bucket=${bucket.id} name=${name} type=${mimetype} />
        <h3>${bucket.public ? labels.publicAddress : labels.signedAddress}</h3>
        ${address.error && html`<${Notice} kind="error" error=${address.error} />`}
        ${address.value && html`<${CodeBlock} label=${labels.publicAddress} text=${address.value} wrap />`}
        ${isAsking && html`<${Notice} kind="warning" title=${labels.deleteFile(name)}><p>${labels.deleteFileHint}</p><//>`}
        ${failure && html`<${Notice} kind="error" error=${failure} />`}
        <div class="row form-actions">
          <${Button} kind="danger" icon="trash" onClick=${isAsking ? remove : () => setAsking(true)}>${labels.delete}<//>
        </div>
      </div>
    <//>
  `;
}

type PreviewProps = { readonly bucket: string; readonly name: string; readonly type: string };

function Preview({ bucket, name, type }: PreviewProps) {
  const labels = texts.files;
  const isImage = IMAGE.test(type);
  const { value, error } = useLoaded(async (signal) => {
    if (isImage) return signFile(bucket, name);
    return TEXT.test(type) ? readText(bucket, name, signal) : "";
  }, []);
  if (error) return html`<${Notice} kind="error" error=${error} />`;
  if (!isImage && !TEXT.test(type)) return html`<p class="quiet">${labels.noPreview}</p>`;
  if (value === null) return html`<${Loading} />`;
  if (isImage) return html`<img class="file-preview" src=${value} alt=${labels.previewOf(name)} />`;
  return html`<${CodeBlock} label=${labels.previewOf(name)} text=${value} wrap />`;
}
