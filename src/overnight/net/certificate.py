"""The certificate of one run: made when it begins to listen, known to nobody beforehand."""

from __future__ import annotations

import os
import ssl
from datetime import datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.x509 import KeyUsage

BEGINS, ENDS = datetime(2000, 1, 1), datetime(9999, 12, 31)
"""It is pinned and lives as long as its run; a joiner's clock may be wrong by years."""


class Certificate:
    """A key pair in PEM: what is said to joiners, and what stays here."""

    __slots__ = ("_key", "text")

    def __init__(self, text: str, key: bytes) -> None:
        self.text = text
        self._key = key

    def server_context(self) -> ssl.SSLContext:
        """TLS as this run's driver speaks it.

        Raises:
            OSError: The key could not be handed to TLS.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.num_tickets = 0  # nobody resumes a session: a link lasts, or is dialled anew
        # ssl takes files only. This one lies in memory and has no name that others could open.
        fd = os.memfd_create("overnight", os.MFD_CLOEXEC)
        try:
            os.write(fd, self._key + self.text.encode("ascii"))
            context.load_cert_chain(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
        return context


def make_certificate() -> Certificate:
    """A new key and its certificate, signed by itself."""
    # Making a certificate by hand is how mistakes are made; the library costs a listening
    # driver 50 ms, and nobody else anything.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "overnight run")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGINS).not_valid_after(ENDS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        certificate.public_bytes(Encoding.PEM).decode("ascii"),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _usage() -> KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=False, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )
