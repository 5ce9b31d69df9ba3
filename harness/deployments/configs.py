"""The deployments that there are, as configs write them. A new one is one more here."""

from harness.deployments.embedded.config import Embedded
from harness.deployments.sglang.config import SGLang, SGLangLaunch

DeploymentConfig = Embedded | SGLang | SGLangLaunch
